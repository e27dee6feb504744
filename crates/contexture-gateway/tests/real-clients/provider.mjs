// A provider that has an agent work: it asks for one command after the other and then says that it is done.
// It speaks Anthropic messages, OpenAI chat completions and responses, and Google's generateContent, and refuses what
// breaks their rules.
// It can have a fault, once, before the answer to the third request of the task.

import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import * as zlib from "node:zlib";
import { Cache, billed, usage } from "./cache.mjs";
import { broken, signature, signs, thinks, thoughtSignature } from "./rules.mjs";

const said = (kind, body) => ({ responses: body.input, gemini: body.contents })[kind] ?? body.messages;

// Messages as a cache sees them.
function plain(kind, body) {
  return said(kind, body).map((message) => JSON.stringify(message, (name, value) => (name === "cache_control" ? undefined : value)));
}

function outputs(kind, body) {
  const text = JSON.stringify(said(kind, body));
  const done = [...text.matchAll(/step-(\d+)-of-the-task/g)].map((match) => Number(match[1]));
  return done.length === 0 ? 0 : Math.max(...done) + 1;
}

// Codex gives newer models one tool that runs JavaScript, in an item of the conversation.
function scripted(body, command) {
  const tools = (body.input ?? []).flatMap((item) => (item.type === "additional_tools" ? item.tools : []));
  const space = tools.find((tool) => tool.tools?.some(({ type, name }) => type === "custom" && name === "exec"));
  const script = `const ran = await tools.exec_command({ cmd: ${JSON.stringify(command)}, max_output_tokens: 20000 });\ntext(ran.output);`;
  return space ? { name: "exec", namespace: space.name, script } : null;
}

// The tool that runs commands, by what it is called and what it takes.
function call(body, command) {
  const tools = (body.tools ?? []).flatMap((tool) => tool.functionDeclarations ?? tool.function ?? tool);
  const schemaOf = (tool) => tool.input_schema ?? tool.parametersJsonSchema ?? tool.parameters ?? {};
  const takes = (tool) => schemaOf(tool).properties ?? {};
  const runs = (tool) => /bash|shell|exec|terminal|command/i.test(tool.name ?? "") && ("command" in takes(tool) || "cmd" in takes(tool));
  const tool = tools.find(runs);
  if (!tool) return scripted(body, command);
  const input = {};
  for (const name of schemaOf(tool).required ?? []) {
    const takenAs = takes(tool)[name]?.anyOf?.[0] ?? takes(tool)[name];
    const type = [takenAs?.type].flat()[0];
    input[name] = takenAs?.enum?.[0] ?? { boolean: false, number: 60, integer: 60, array: [], object: {} }[type] ?? "look";
  }
  const name = "command" in takes(tool) ? "command" : "cmd";
  input[name] = takes(tool)[name]?.type === "array" ? ["bash", "-lc", command] : command;
  return { name: tool.name, input };
}

function answer(kind, body, use, text, id, usage) {
  if (kind === "messages") {
    const block = use ? { type: "tool_use", id: `toolu_${id}`, name: use.name, input: {} } : { type: "text", text: "" };
    const delta = use ? { type: "input_json_delta", partial_json: JSON.stringify(use.input) } : { type: "text_delta", text };
    const message = { id: `msg_${id}`, type: "message", role: "assistant", model: body.model, content: [], stop_reason: null, stop_sequence: null, usage };
    const stop = use ? "tool_use" : "end_turn";
    const isThinking = thinks(body.model) || body.thinking?.type === "enabled";
    const thought = isThinking ? [{ type: "thinking", thinking: "I go on.", signature: signature(body.messages) }] : [];
    if (!body.stream) return { ...message, stop_reason: stop, content: [...thought, use ? { ...block, input: use.input } : { type: "text", text }] };
    const index = thought.length;
    const thinking = thought.flatMap((made) => [{ type: "content_block_start", index: 0, content_block: { type: "thinking", thinking: "", signature: "" } },
      { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: made.thinking } },
      { type: "content_block_delta", index: 0, delta: { type: "signature_delta", signature: made.signature } }, { type: "content_block_stop", index: 0 }]);
    return [{ type: "message_start", message }, ...thinking, { type: "content_block_start", index, content_block: block }, { type: "content_block_delta", index, delta },
      { type: "content_block_stop", index }, { type: "message_delta", delta: { stop_reason: stop, stop_sequence: null }, usage: { output_tokens: 10 } }, { type: "message_stop" }];
  }
  if (kind === "chat") {
    const calls = use && [{ index: 0, id: `call_${id}`, type: "function", function: { name: use.name, arguments: JSON.stringify(use.input) } }];
    const total = { prompt_tokens: usage.input_tokens, prompt_tokens_details: usage.input_tokens_details, completion_tokens: 10, total_tokens: usage.input_tokens + 10 };
    const message = use ? { role: "assistant", content: null, tool_calls: calls } : { role: "assistant", content: text };
    const head = { id: `chat_${id}`, created: 0, model: body.model };
    const reason = use ? "tool_calls" : "stop";
    if (!body.stream) return { ...head, object: "chat.completion", choices: [{ index: 0, message, finish_reason: reason }], usage: total };
    const chunk = (choices, more) => ({ ...head, object: "chat.completion.chunk", choices, ...more });
    return [chunk([{ index: 0, delta: message, finish_reason: null }]), chunk([{ index: 0, delta: {}, finish_reason: reason }]), chunk([], { usage: total })];
  }
  if (kind === "gemini") {
    const signed = use && signs(body.model) && { thoughtSignature: thoughtSignature(use) };
    const parts = [use ? { functionCall: { name: use.name, args: use.input }, ...signed } : { text }];
    const counts = { promptTokenCount: usage.input_tokens, cachedContentTokenCount: usage.input_tokens_details.cached_tokens, candidatesTokenCount: 10, totalTokenCount: usage.input_tokens + 10 };
    const whole = { candidates: [{ index: 0, content: { role: "model", parts }, finishReason: "STOP" }], usageMetadata: counts, modelVersion: body.model, responseId: `r_${id}` };
    return body.stream ? [whole] : whole;
  }
  const item = use?.script
    ? { id: `ctc_${id}`, type: "custom_tool_call", call_id: `call_${id}`, name: use.name, namespace: use.namespace, input: use.script, status: "completed" }
    : use
    ? { id: `fc_${id}`, type: "function_call", call_id: `call_${id}`, name: use.name, arguments: JSON.stringify(use.input), status: "completed" }
    : { id: `msg_${id}`, type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text, annotations: [] }] };
  const response = (status, output) => ({ id: `resp_${id}`, object: "response", created_at: 0, status, model: body.model, output, usage: { ...usage, total_tokens: usage.input_tokens + 10 } });
  if (!body.stream) return response("completed", [item]);
  const events = [{ type: "response.created", response: response("in_progress", []) }, { type: "response.output_item.added", output_index: 0, item: use ? { ...item, [use.script ? "input" : "arguments"]: "", status: "in_progress" } : { ...item, content: [], status: "in_progress" } }];
  if (!use) {
    const at = { item_id: item.id, output_index: 0, content_index: 0 };
    events.push({ type: "response.content_part.added", ...at, part: { type: "output_text", text: "", annotations: [] } }, { type: "response.output_text.delta", ...at, delta: text }, { type: "response.output_text.done", ...at, text });
  }
  events.push({ type: "response.output_item.done", output_index: 0, item }, { type: "response.completed", response: response("completed", [item]) });
  return events.map((event, at) => ({ ...event, sequence_number: at }));
}

// What says nothing in the form that a request asks for, if it asks for one.
function formed(body) {
  const value = ({ type, properties, enum: one }) => one?.[0] ?? { object: () => Object.fromEntries(Object.entries(properties ?? {}).map(([name, schema]) => [name, value(schema)])), array: () => [], boolean: () => false, number: () => 0, integer: () => 0 }[String(type).toLowerCase()]?.() ?? "nothing";
  const schema = body.generationConfig?.responseJsonSchema ?? body.generationConfig?.responseSchema;
  return schema ? JSON.stringify(value(schema)) : null;
}

// A summary of the work so far, for an agent whose window is full.
const summary = ({ done }) => `<summary>The task goes on${done > 0 ? ` after step-${done - 1}-of-the-task` : ""}.</summary>`;

const asksForSummary = (kind, body) => /create a detailed summary|summary of (our|the) conversation/.test(JSON.stringify(said(kind, body).slice(-3)));

// Faults, by name: each answers a request in place of the provider, and returns whether it did.
const faults_by_name = {
  "429": (response, kind) => refuse(response, kind, 429, "rate_limit_error"),
  "429-after": (response, kind) => refuse(response, kind, 429, "rate_limit_error", { "retry-after": "1" }),
  "500": (response, kind) => refuse(response, kind, 500, "api_error"),
  "529": (response, kind) => refuse(response, kind, 529, "overloaded_error"),
  "400": (response, kind) => refuse(response, kind, 400, "invalid_request_error"),
  cut: (response, kind, made) => {
    if (!Array.isArray(made)) return response.destroy();
    response.setHeader("content-type", "text/event-stream");
    response.write(event(made[0]));
    setTimeout(() => response.destroy(), 100);
  },
};

function refuse(response, kind, status, type, headers = {}, message = `a ${status} on purpose`) {
  const error = kind === "gemini" ? { code: status, message, status: status === 429 ? "RESOURCE_EXHAUSTED" : type } : { type, code: type, message };
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(kind === "messages" ? { type: "error", error } : { error }));
}

const event = (data) => `${data.type ? `event: ${data.type}\n` : ""}data: ${JSON.stringify(data)}\n\n`;

// A body as it was before it was compressed.
function decoded(request, bytes) {
  const coding = request.headers["content-encoding"];
  if (!coding) return bytes.toString();
  if (coding !== "zstd" || !zlib.zstdDecompressSync) throw new Error(`a body that is compressed with ${coding}; Node 22 reads zstd`);
  return zlib.zstdDecompressSync(bytes).toString();
}

// Starts a provider that asks for so many steps, by reading a file each or by these commands, and then for the command
// that ends the work, if a client has one. What it saw is in `requests`.
export async function provide({ steps, fault, end, commands }) {
  const requests = [];
  let [last, count, faulted] = [[], 0, false];
  const cache = new Cache({ least: Number(process.env.LEAST ?? 1024) });
  // The model's window, in tokens, and its prices as shares of that of input.
  const window = Number(process.env.WINDOW ?? Infinity);
  const prices = { read: Number(process.env.READ ?? 0.1) };

  function note(kind, request, body) {
    const isMain = Boolean(call(body, ""));
    const now = plain(kind, body);
    const shared = now.findIndex((message, at) => message !== last[at]);
    const kept = shared === -1 ? now.length : Math.min(shared, last.length);
    const bytes = JSON.stringify(body).length;
    const entry = { kind, isMain, streams: Boolean(body.stream), bytes, kept, before: last.length, done: outputs(kind, body), faults: broken(kind, body), model: body.model, betas: request.headers["anthropic-beta"], headers: request.headers };
    if (isMain) last = now;
    requests.push(entry);
    if (process.env.DUMP) writeFileSync(`${process.env.DUMP}/${Date.now()}-${requests.length}.json`, JSON.stringify({ url: request.url, headers: request.headers, body }, null, 1));
    return entry;
  }

  function serve(request, response, json) {
    const path = request.url.split("?")[0];
    const [, model, method] = path.match(/\/models\/([^/:]+):(generateContent|streamGenerateContent)$/) ?? [];
    const kind = path.endsWith("/messages") ? "messages" : path.endsWith("/chat/completions") ? "chat" : path.endsWith("/responses") ? "responses" : method ? "gemini" : null;
    if (!kind || request.method !== "POST") {
      response.setHeader("content-type", "application/json");
      return response.end(JSON.stringify({ object: "list", data: [], input_tokens: 1, totalTokens: 1 }));
    }
    // Google's requests name the model in their address.
    const body = { ...JSON.parse(json), ...(model && { model, stream: method === "streamGenerateContent" }) };
    const entry = note(kind, request, body);
    count += 1;
    // What breaks a rule is refused, as the provider would.
    if (entry.faults.length > 0) return refuse(response, kind, 400, "invalid_request_error", {}, entry.faults[0]);
    // Not every model takes instructions inside a conversation.
    if (process.env.WITHOUT === "system" && kind === "messages" && body.messages.some(({ role }) => role === "system")) return refuse(response, kind, 400, "invalid_request_error", {}, "role 'system' is not supported on this model");
    const took = cache.serve(kind, body);
    if (took.total > window) return refuse(response, kind, 400, "invalid_request_error", {}, `prompt is too long: ${took.total} tokens > ${window} maximum`);
    Object.assign(entry, { took, billed: billed(took, prices) });
    const step = commands ? `${commands[entry.done]}; echo step-${entry.done}-of-the-task` : `cat part_${entry.done}.txt`;
    const command = entry.done < steps ? step : end;
    const isSummary = asksForSummary(kind, body);
    const use = entry.isMain && command ? call(body, command) : null;
    const text = entry.isMain ? "The task is done." : (formed(body) ?? "A title");
    const made = answer(kind, body, isSummary ? null : use, isSummary ? summary(entry) : text, `${count}`, usage(kind, took));
    if (fault in faults_by_name && entry.isMain && entry.done === 2 && !faulted) {
      [faulted, entry.faulted] = [true, fault];
      return faults_by_name[fault](response, kind, made);
    }
    const send = () => (Array.isArray(made) ? stream(response, kind, made) : response.end(JSON.stringify({ ...made, ...(fault === "unknown" && { unheard_of: { a: [1, null] } }) })));
    response.setHeader("content-type", Array.isArray(made) ? "text/event-stream" : "application/json");
    return fault === "slow" && entry.isMain && entry.done === 2 ? setTimeout(send, 8000) : send();
  }

  function stream(response, kind, made) {
    for (const [at, data] of made.entries()) {
      if (fault === "unknown" && at === 1 && kind !== "chat") response.write(event({ type: "unheard_of.event", a: [1, null] }));
      response.write(event(fault === "unknown" ? { ...data, unheard_of: { b: "c" } } : data));
    }
    if (kind === "chat") response.write("data: [DONE]\n\n");
    response.end();
  }

  const server = createServer((request, response) => {
    const chunks = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => {
      try {
        serve(request, response, decoded(request, Buffer.concat(chunks)));
      } catch (error) {
        requests.push({ kind: "broken", faults: [`${request.method} ${request.url}: ${error.message}`] });
        response.writeHead(500).end();
      }
    });
  });
  server.on("upgrade", (request, socket) => socket.end("HTTP/1.1 426 Upgrade Required\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"));
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return { requests, url: `http://127.0.0.1:${server.address().port}`, close: () => { server.closeAllConnections(); server.close(); } };
}
