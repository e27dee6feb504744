// A provider that has an agent work: it asks for one command after the other and then says that it is done.
// It speaks Anthropic messages, OpenAI chat completions and OpenAI responses, and notes what is wrong with a request.
//
//   node provider.mjs PORT STEPS LOG

import { createServer } from "node:http";
import { appendFileSync } from "node:fs";

const [port, steps, log] = [Number(process.argv[2]), Number(process.argv[3]), process.argv[4]];
let last = [];

// What a provider would refuse.
function faults(kind, body) {
  const found = [];
  const marks = (JSON.stringify(body).match(/"cache_control":\{/g) ?? []).length;
  if (marks > 4) found.push(`${marks} cache marks`);
  if (kind === "messages") {
    const merged = [];
    for (const message of body.messages) {
      const blocks = typeof message.content === "string" ? [{ type: "text", text: message.content }] : message.content;
      const before = merged.at(-1);
      if (before?.role === message.role) before.blocks.push(...blocks);
      else merged.push({ role: message.role, blocks: [...blocks] });
    }
    if (merged[0]?.role !== "user") found.push("the first message is not the user's");
    let asked = [];
    for (const { role, blocks } of merged.filter(({ role }) => role !== "system")) {
      const returned = blocks.filter((block) => block.type === "tool_result").map((block) => block.tool_use_id);
      if (role === "user" && String([...returned].sort()) !== String([...asked].sort())) found.push(`asked ${asked}, returned ${returned}`);
      asked = blocks.filter((block) => block.type === "tool_use").map((block) => block.id);
    }
  } else if (kind === "chat") {
    const open = new Set();
    for (const message of body.messages) {
      if (message.role === "tool") {
        if (!open.delete(message.tool_call_id)) found.push("an output without its call");
        continue;
      }
      if (open.size > 0) found.push("calls without outputs");
      for (const call of message.tool_calls ?? []) open.add(call.id);
    }
  } else {
    const ids = (end) => body.input.filter((item) => String(item.type).endsWith(end)).map((item) => item.call_id).sort();
    if (String(ids("_call")) !== String(ids("_call_output"))) found.push("calls and outputs do not match");
  }
  return found;
}

// Messages as a cache sees them.
function plain(kind, body) {
  const list = kind === "responses" ? body.input : body.messages;
  return list.map((message) => JSON.stringify(message, (name, value) => (name === "cache_control" ? undefined : value)));
}

function outputs(kind, body) {
  const text = JSON.stringify(kind === "responses" ? body.input : body.messages);
  const done = [...text.matchAll(/step-(\d+)-of-the-task/g)].map((match) => Number(match[1]));
  return done.length === 0 ? 0 : Math.max(...done) + 1;
}

// The tool that runs commands, by the names that agents give it.
function call(body, command) {
  const tools = (body.tools ?? []).map((tool) => tool.function ?? tool);
  const known = { Bash: { command, description: "look" }, bash: { command, description: "look" }, exec_command: { cmd: command }, shell_command: { command }, shell: { command: ["bash", "-lc", command] }, run_shell_command: { command } };
  const tool = tools.find((tool) => tool.name in known);
  return tool && { name: tool.name, input: known[tool.name] };
}

// What a request took, with everything that it has in common with the one before read from a cache.
function took(kind, body, cached) {
  const total = Math.ceil(JSON.stringify(body).length / 4);
  const read = Math.min(Math.floor(cached / 4), total);
  if (kind === "messages") return { input_tokens: 0, cache_read_input_tokens: read, cache_creation_input_tokens: total - read, output_tokens: 10 };
  return { input_tokens: total, input_tokens_details: { cached_tokens: read }, output_tokens: 10 };
}

function answer(kind, body, use, text, id, cached) {
  const usage = took(kind, body, cached);
  if (kind === "messages") {
    const block = use ? { type: "tool_use", id: `toolu_${id}`, name: use.name, input: {} } : { type: "text", text: "" };
    const delta = use ? { type: "input_json_delta", partial_json: JSON.stringify(use.input) } : { type: "text_delta", text };
    const message = { id: `msg_${id}`, type: "message", role: "assistant", model: body.model, content: [], stop_reason: null, stop_sequence: null, usage };
    const stop = use ? "tool_use" : "end_turn";
    if (!body.stream) return { ...message, stop_reason: stop, content: [use ? { ...block, input: use.input } : { type: "text", text }] };
    return [{ type: "message_start", message }, { type: "content_block_start", index: 0, content_block: block }, { type: "content_block_delta", index: 0, delta },
      { type: "content_block_stop", index: 0 }, { type: "message_delta", delta: { stop_reason: stop, stop_sequence: null }, usage: { output_tokens: 10 } }, { type: "message_stop" }];
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
  const item = use
    ? { id: `fc_${id}`, type: "function_call", call_id: `call_${id}`, name: use.name, arguments: JSON.stringify(use.input), status: "completed" }
    : { id: `msg_${id}`, type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text, annotations: [] }] };
  const response = (status, output) => ({ id: `resp_${id}`, object: "response", created_at: 0, status, model: body.model, output, usage: { ...usage, total_tokens: usage.input_tokens + 10 } });
  if (!body.stream) return response("completed", [item]);
  const events = [{ type: "response.created", response: response("in_progress", []) }, { type: "response.output_item.added", output_index: 0, item: use ? { ...item, arguments: "", status: "in_progress" } : { ...item, content: [], status: "in_progress" } }];
  if (!use) events.push({ type: "response.output_text.delta", item_id: item.id, output_index: 0, content_index: 0, delta: text });
  return [...events, { type: "response.output_item.done", output_index: 0, item }, { type: "response.completed", response: response("completed", [item]) }];
}

let count = 0;
createServer((request, response) => {
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => {
    const path = request.url.split("?")[0];
    const kind = path.endsWith("/messages") ? "messages" : path.endsWith("/chat/completions") ? "chat" : path.endsWith("/responses") ? "responses" : null;
    let body = {};
    try { body = JSON.parse(Buffer.concat(chunks).toString()); } catch { /* not for a model */ }
    if (!kind || request.method !== "POST") {
      response.setHeader("content-type", "application/json");
      return response.end(JSON.stringify({ object: "list", data: [], input_tokens: 1 }));
    }
    count += 1;
    const done = outputs(kind, body);
    const isMain = (body.tools ?? []).length > 0;
    const use = isMain && done < steps ? call(body, `cat part_${done}.txt`) : null;
    const now = plain(kind, body);
    const shared = now.findIndex((message, at) => message !== last[at]);
    const entry = { kind, isMain, messages: now.length, bytes: JSON.stringify(body).length, kept: isMain ? (shared === -1 ? now.length : Math.min(shared, last.length)) : null, before: isMain ? last.length : null, done, faults: faults(kind, body) };
    const head = JSON.stringify(body).length - now.join(",").length;
    const cached = isMain && last.length > 0 ? head + now.slice(0, entry.kept).join(",").length : 0;
    if (isMain) last = now;
    appendFileSync(log, JSON.stringify(entry) + "\n");
    const made = answer(kind, body, use, isMain ? "The task is done." : "A title", `${count}`, cached);
    if (!Array.isArray(made)) {
      response.setHeader("content-type", "application/json");
      return response.end(JSON.stringify(made));
    }
    response.setHeader("content-type", "text/event-stream");
    for (const event of made) response.write(`${event.type ? `event: ${event.type}\n` : ""}data: ${JSON.stringify(event)}\n\n`);
    if (kind === "chat") response.write("data: [DONE]\n\n");
    response.end();
  });
}).listen(port, "127.0.0.1");
