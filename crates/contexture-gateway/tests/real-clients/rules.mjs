// What providers refuse, written from their documentation and from the errors that people report, read on 2026-11-17 and -18:
// Anthropic's pages on messages, tool use, thinking, prompt caching and mid-conversation system messages; OpenAI's
// references of chat completions and responses, and its guides on function calling and reasoning; DeepSeek's on thinking;
// on 2026-11-19 Google's on function calling and thought signatures.

import { createHash } from "node:crypto";

const list = (value) => (Array.isArray(value) ? value : []);
const isText = (block) => block.type === "text";
const isThought = (block) => block.type === "thinking" || block.type === "redacted_thinking";

function blocksOf(content) {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  return list(content);
}

// Models that think, and whose thoughts are bound to everything that was sent before them.
export const thinks = (model) => /claude-(fable|mythos)-5-[12]|claude-(opus|sonnet|haiku)-5-5/.test(model ?? "");

// What a thought after these messages is signed with.
export function signature(before) {
  const plain = before.map(({ role, content }) => ({ role, blocks: blocksOf(content).map(({ cache_control, ...block }) => block) }));
  return createHash("sha256").update(JSON.stringify(plain)).digest("base64");
}

function* bound(body) {
  for (const [at, { role, content }] of body.messages.entries()) {
    const thought = role === "assistant" && blocksOf(content).find(({ type }) => type === "thinking");
    if (thought && thinks(body.model) && thought.signature !== signature(body.messages.slice(0, at))) {
      yield `messages.${at}.content.0: Invalid \`signature\` in \`thinking\` block. The block is bound to a different conversation.`;
    }
  }
}

// Models before Claude 4.6 go on with a text that the request begins for them.
const continues = (model) => !/claude/.test(model) || /claude-3|-4-0|-4-1|-4-2\d|-4-5/.test(model);

function* messages(body) {
  const roles = body.messages.map(({ role }) => role);
  const turns = [];
  if (roles[0] !== "user") yield 'messages: first message must use the "user" role';
  for (const [at, { role, content }] of body.messages.entries()) {
    const blocks = blocksOf(content);
    const isLast = at + 1 === roles.length;
    if (!["user", "assistant", "system"].includes(role)) yield `messages.${at}: Unexpected role "${role}"`;
    if (role === "system") {
      const before = turns.at(-1)?.blocks.at(-1)?.type ?? "";
      const isServer = roles[at - 1] === "assistant" && (before === "server_tool_use" || (before.endsWith("_tool_result") && before !== "tool_result"));
      if (roles[at - 1] !== "user" && !isServer) yield `messages.${at}: role 'system' must follow a 'user' message`;
      if (!isLast && roles[at + 1] !== "assistant") yield `messages.${at}: role 'system' must precede an 'assistant' message or end the array`;
    }
    if (blocks.length === 0 && !(isLast && role === "assistant")) yield `messages.${at}: all messages must have non-empty content except for the optional final assistant message`;
    for (const [n, block] of blocks.entries()) {
      if (isText(block) && !block.text.trim()) yield `messages.${at}.content.${n}: text content blocks must contain non-whitespace text`;
      if (/^tool_(addition|removal)$/.test(block.type) && role !== "system") yield `messages.${at}.content: 'tool_addition'/'tool_removal' blocks are only permitted within role: "system" messages`;
      const id = { tool_use: block.id, tool_result: block.tool_use_id }[block.type];
      if (id !== undefined && /claude/.test(body.model) && !/^[a-zA-Z0-9_-]+$/.test(id)) yield `messages.${at}.content.${n}.${block.type}.id: String should match pattern '^[a-zA-Z0-9_-]+$'`;
      if (isThought(block) && block.cache_control) yield `messages.${at}.content.${n}: cache_control on thinking`;
      if (isThought(block) && !(block.signature || block.data)) yield `messages.${at}.content.${n}: Invalid \`signature\` in \`thinking\` block`;
    }
    if (role === "system") continue;
    if (turns.at(-1)?.role === role) turns.at(-1).blocks.push(...blocks);
    else turns.push({ role, blocks: [...blocks] });
  }
  yield* pairs(turns);
  const last = turns.at(-1);
  if (roles.at(-1) === "assistant" && !continues(body.model ?? "")) yield "This model does not support assistant message prefill.";
  if (roles.at(-1) === "assistant" && /\s$/.test(last.blocks.at(-1)?.text ?? "")) yield "messages: final assistant content cannot end with trailing whitespace";
  const newest = turns.findLast(({ role }) => role === "assistant");
  if (newest?.blocks.some(isThought) && !isThought(newest.blocks[0])) yield "`thinking` blocks in the latest assistant message cannot be modified";
  for (const { role, blocks } of turns) if (role === "assistant" && blocks.length > 0 && isThought(blocks.at(-1))) yield "The final block in an assistant message cannot be `thinking`.";
  yield* serverResults(turns);
  if (body.thinking?.type === "enabled") yield* begins(turns);
  yield* marks(body);
  yield* bound(body);
}

// With a budget for thinking, the final turn of the model begins with it; results do not end a turn.
function* begins(turns) {
  let first = null;
  for (const turn of turns) {
    if (turn.role === "assistant") first ??= turn;
    else if (!turn.blocks.some(({ type }) => type === "tool_result")) first = null;
  }
  if (first && !isThought(first.blocks[0])) yield "Expected `thinking` or `redacted_thinking`. When `thinking` is enabled, a final `assistant` message must start with a thinking block";
}

function* serverResults(turns) {
  for (const { blocks } of turns) {
    for (const [n, block] of blocks.entries()) {
      if (!block.type?.endsWith("_tool_result")) continue;
      const isCall = ({ type, id }) => type?.endsWith("_tool_use") && id === block.tool_use_id;
      if (!blocks.slice(0, n).some(isCall)) yield `unexpected \`tool_use_id\` found in \`${block.type}\` blocks: ${block.tool_use_id}`;
    }
  }
}

function* pairs(turns) {
  const seen = new Set();
  let asked = [];
  for (const { role, blocks } of turns) {
    const results = blocks.filter(({ type }) => type === "tool_result").map((block) => block.tool_use_id);
    for (const id of results) if (!asked.includes(id)) yield `unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}`;
    for (const id of asked) if (!results.includes(id)) yield `\`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${id}`;
    const first = blocks.findIndex(({ type }) => type !== "tool_result");
    if (first !== -1 && blocks.slice(first).some(({ type }) => type === "tool_result")) yield "`tool_result` blocks must come first in the content";
    asked = role === "assistant" ? blocks.filter(({ type }) => type === "tool_use").map(({ id }) => id) : [];
    for (const id of asked) {
      if (seen.has(id)) yield `\`tool_use\` ids must be unique: ${id}`;
      seen.add(id);
    }
  }
  if (asked.length > 0) yield "`tool_use` ids were found without `tool_result` blocks at the end";
}

function* marks(body) {
  const blocks = [...list(body.tools), ...list(body.system), ...body.messages.flatMap(({ content }) => list(content))];
  const marked = blocks.filter((block) => block.cache_control);
  const count = marked.length + (body.cache_control ? 1 : 0);
  if (count > 4) yield `A maximum of 4 blocks with cache_control may be provided. Found ${count}.`;
  const lives = marked.map((block) => block.cache_control.ttl ?? "5m");
  if (lives.lastIndexOf("1h") > lives.indexOf("5m") && lives.includes("5m")) yield "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block";
}

function* chat(body) {
  const open = new Set();
  if (body.messages.length === 0) yield "Invalid 'messages': empty array.";
  for (const [at, message] of body.messages.entries()) {
    if (!["developer", "system", "user", "assistant", "tool", "function"].includes(message.role)) yield `Invalid value: '${message.role}'.`;
    if (message.role === "tool") {
      if (!open.delete(message.tool_call_id)) yield "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.";
    } else if (open.size > 0) {
      yield "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.";
      open.clear();
    }
    const calls = list(message.tool_calls);
    if (message.tool_calls && calls.length === 0) yield `Invalid 'messages[${at}].tool_calls': empty array.`;
    const isEmpty = message.content == null || (Array.isArray(message.content) && message.content.length === 0);
    if (isEmpty && !(message.role === "assistant" && (calls.length > 0 || message.function_call || message.refusal))) yield `Invalid value for 'content': expected a string, got null. messages[${at}]`;
    for (const call of calls) open.add(call.id);
  }
  if (open.size > 0) yield "An assistant message with 'tool_calls' must be followed by tool messages at the end.";
  const calling = body.messages.filter(({ tool_calls }) => list(tool_calls).length > 0);
  const isBare = ({ reasoning_content }) => reasoning_content == null;
  if (/kimi|deepseek/.test(body.model) && calling.some(isBare) && !calling.every(isBare)) yield "thinking is enabled but reasoning_content is missing in assistant tool call message";
}

function* responses(body) {
  const items = body.input;
  const seen = new Set();
  for (const kind of ["function_call", "custom_tool_call", "local_shell_call", "shell_call"]) {
    const at = (type) => items.flatMap((item, n) => (item.type === type ? [[item.call_id, n]] : []));
    const [calls, outputs] = [at(kind), at(`${kind}_output`)];
    for (const [id, n] of outputs) if (!body.previous_response_id && !calls.some(([call, before]) => call === id && before < n)) yield `No tool call found for function call output with call_id ${id}.`;
    for (const [id] of calls) if (!outputs.some(([output]) => output === id)) yield `No tool output found for function call ${id}.`;
  }
  const beginnings = { message: "msg", function_call: "fc", custom_tool_call: "ctc", reasoning: "rs" };
  for (const [at, item] of items.entries()) {
    const beginning = beginnings[item.type ?? "message"];
    if (/gpt-/.test(body.model) && item.id && beginning && !item.id.startsWith(beginning)) yield `Invalid 'input[${at}].id': '${item.id}'. Expected an ID that begins with '${beginning}'.`;
    if (/gpt-/.test(body.model) && Math.max(item.id?.length ?? 0, item.call_id?.length ?? 0) > 64) yield `Invalid 'input[${at}].call_id': string too long. Expected a string with maximum length 64.`;
    if (item.id && item.type !== "item_reference") {
      if (seen.has(item.id)) yield `Duplicate item found with id ${item.id}.`;
      seen.add(item.id);
    }
    if (item.type === "reasoning") {
      const next = items.slice(at + 1).find(({ type }) => type !== "reasoning");
      if (!(next && (next.role === "assistant" || /_call$|^compaction/.test(next.type ?? "")))) yield `Item '${item.id}' of type 'reasoning' was provided without its required following item.`;
    }
    if (item.type === "message" || (!item.type && item.role)) {
      if (!["developer", "system", "user", "assistant"].includes(item.role)) yield `Invalid value: '${item.role}'.`;
      const start = item.role === "assistant" ? "output_" : "input_";
      for (const part of list(item.content)) if (part.type !== "refusal" && !String(part.type).startsWith(start)) yield `Invalid value: '${part.type}' in input[${at}].`;
    }
  }
}

// Models whose calls come with signatures, which they want back.
export const signs = (model) => /gemini-([3-9]|\d\d)/.test(model ?? "");

export const thoughtSignature = ({ name, args, input }) => createHash("sha256").update(JSON.stringify([name, args ?? input])).digest("base64");

// Written by clients that have none, and accepted.
const unsigned = ["skip_thought_signature_validator", "context_engineering_is_the_way_to_go"];

function* gemini(body) {
  const contents = list(body.contents);
  if (contents.length === 0) yield "contents is not specified";
  const has = (content, name) => list(content?.parts).filter((part) => part[name]);
  for (const [at, content] of contents.entries()) {
    if (content.role && !["user", "model", "function"].includes(content.role)) yield "Please use a valid role: user, model.";
    if (list(content.parts).length === 0) yield `contents[${at}].parts must not be empty.`;
    for (const part of list(content.parts)) if (Object.keys(part).length === 0) yield `contents[${at}].parts: required oneof field 'data' must have one initialized field`;
    const [calls, answers] = [has(content, "functionCall"), has(content, "functionResponse")];
    if (calls.length > 0) {
      if (at === 0 || contents[at - 1].role === "model") yield "Please ensure that function call turn comes immediately after a user turn or after a function response turn.";
      if (has(contents[at + 1], "functionResponse").length !== calls.length) yield "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.";
    }
    if (answers.length > 0 && has(contents[at - 1], "functionCall").length === 0) yield "Please ensure that function response turn comes immediately after a function call turn.";
    const asked = has(contents[at - 1], "functionCall").map(({ functionCall }) => functionCall.name);
    for (const { functionResponse } of answers) if (asked.length > 0 && !asked.includes(functionResponse.name)) yield `no function call of the turn before is named ${functionResponse.name}`;
  }
  if (contents.at(-1)?.role === "model") yield "Please ensure that multiturn requests end with a user role or a function response.";
  if (signs(body.model)) yield* signed(contents, has);
}

// The current turn begins with what the user said last; the first call of each of its steps is signed.
function* signed(contents, has) {
  const begins = contents.findLastIndex((content) => content.role !== "model" && list(content.parts).some(({ text }) => text) && has(content, "functionResponse").length === 0);
  for (const [at, content] of contents.entries()) {
    const calls = has(content, "functionCall");
    if (at > begins && calls.length > 0 && !calls[0].thoughtSignature) yield `Function call is missing a thought_signature in functionCall parts. Function call \`${calls[0].functionCall.name}\`, position ${at + 1}.`;
    for (const { functionCall, thoughtSignature: given } of calls) if (given && !unsigned.includes(given) && given !== thoughtSignature(functionCall)) yield "Corrupted thought signature.";
  }
}

// What is wrong with a request.
export const broken = (kind, body) => [...{ messages, chat, responses, gemini }[kind](body)];
