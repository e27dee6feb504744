// What adapters have in common: prompts of the AI SDK, which Mastra uses too, in OpenAI's chat format and back.
"use strict";

const { createHash } = require("node:crypto");

/** Folds a prompt. Resolves to what was decided, and to the prompt to send, in which all that is kept is the same object. */
async function foldPrompt(folder, { model, prompt, tools = [] }) {
  const places = prompt.flatMap(({ role, content }, number) =>
    role === "tool" ? content.map((_, part) => ({ number, part })) : [{ number }],
  );
  const came = places.map(({ number, part }) => wireOf(prompt[number], part));
  const folded = await folder.request({ model: model ?? "", messages: came, tools: tools.map(toolOf) });
  if (!folded.isChanged) return { folded, prompt };
  return { folded, prompt: joined(prompt, positions(came, folded.messages).map((one) => places[one] ?? one)) };
}

/** For each message to send, the number of the one that came; or the message, if it was made. */
function positions(came, messages) {
  const known = new Map();
  came.forEach((message, number) => {
    const key = JSON.stringify(message);
    known.set(key, [...(known.get(key) ?? []), number]);
  });
  let newest = -1;
  return messages.map((message) => {
    // Messages that are kept are in their order.
    const kept = known.get(JSON.stringify(message))?.find((number) => number > newest);
    newest = kept ?? newest;
    return kept ?? message;
  });
}

/** The prompt of what is shown: results of one message that follow each other are one message again. */
function joined(prompt, shown) {
  const calls = prompt.flatMap(({ content }) => (Array.isArray(content) ? content : []));
  const names = new Map(calls.filter(({ type }) => type === "tool-call").map((call) => [call.toolCallId, call.toolName]));
  const messages = [];
  let open;
  for (const one of shown) {
    const { number, part } = one;
    if (number === undefined) messages.push(made(one, names));
    else if (part === undefined) messages.push(prompt[number]);
    else if (open === number) messages.at(-1).content.push(prompt[number].content[part]);
    else messages.push({ ...prompt[number], content: [prompt[number].content[part]] });
    open = part === undefined ? undefined : number;
  }
  return messages;
}

/** A message in OpenAI's chat format; of results of tools, one. */
function wireOf({ role, content }, part) {
  if (role === "system") return { role, content };
  if (role === "tool") return resultOf(content[part]);
  const parts = content.filter(({ type }) => type !== "tool-call").map(partOf);
  const calls = content.filter(({ type }) => type === "tool-call");
  if (role === "user" || calls.length === 0) return { role, content: parts };
  const tool_calls = calls.map(({ toolCallId: id, toolName: name, input }) => {
    return { id, type: "function", function: { name, arguments: textOf(input) } };
  });
  return { role, content: parts.length === 0 ? null : parts, tool_calls };
}

function resultOf(part) {
  if (part.type !== "tool-result") return { role: "user", content: [opaque(part)] };
  const { type, value, reason } = part.output;
  const texts = type === "content" ? value.map((one) => one.text ?? opaque(one).file.file_id) : [value ?? reason ?? ""];
  return { role: "tool", tool_call_id: part.toolCallId, content: texts.map(textOf).join("\n") };
}

function partOf(part) {
  return part.type === "text" || part.type === "reasoning" ? { type: "text", text: part.text } : opaque(part);
}

/** What is no text: it is kept as it is, and only has to be recognised. */
function opaque(part) {
  const written = JSON.stringify(part, (_, value) => (ArrayBuffer.isView(value) ? digest(value) : value));
  return { type: "file", file: { file_id: digest(written) } };
}

function digest(data) {
  return createHash("sha256").update(data).digest("hex");
}

function textOf(value) {
  return typeof value === "string" ? value : JSON.stringify(value ?? {});
}

function toolOf({ name, description, inputSchema }) {
  return { type: "function", function: { name, description, parameters: inputSchema } };
}

/** A message that was made, or of which something was left out. */
function made({ role, content, tool_calls = [], tool_call_id }, names) {
  const text = typeof content === "string" ? content : (content ?? []).map((part) => part.text ?? "").join("\n");
  if (role === "system") return { role, content: text };
  if (role === "tool") {
    const output = { type: "text", value: text };
    const result = { type: "tool-result", toolCallId: tool_call_id, toolName: names.get(tool_call_id) ?? "", output };
    return { role, content: [result] };
  }
  const calls = tool_calls.map((call) => {
    const { name, arguments: given } = call.function;
    return { type: "tool-call", toolCallId: call.id, toolName: name, input: parsed(given) };
  });
  return { role, content: [...(text === "" ? [] : [{ type: "text", text }]), ...calls] };
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Tells a folder what was billed, from what frameworks report. */
function bill(folder, folded, { input, output, cached }) {
  if (!input) return;
  const usage = { input_tokens: input, output_tokens: output ?? 0, total_tokens: input + (output ?? 0) };
  folder.usage({ ...usage, input_tokens_details: { cached_tokens: cached ?? 0 } }, folded);
}

exports.bill = bill;
exports.foldPrompt = foldPrompt;
