// A provider on this machine, written from the public references of OpenAI's chat completions and responses and Anthropic's
// messages, and of Gemini: https://platform.openai.com/docs/api-reference/chat/create, https://platform.openai.com/docs/api-reference/responses,
// https://docs.anthropic.com/en/api/messages, https://ai.google.dev/api/generate-content.
// It refuses calls without results and results without calls, as they do.
import { createServer } from "node:http";
import { once } from "node:events";

/** Answers "done", or what a script returns for a body: a text, or calls as [id, name, arguments]. */
export async function provider(script = () => "done") {
  const stand = { bodies: [], refusals: [], refuses: () => undefined };
  const { bodies, refusals } = stand;
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString();
    bodies.push({ text, headers: request.headers });
    const body = JSON.parse(text);
    const path = request.url.split("?")[0];
    const wrong = unpaired(body.messages ?? body.input ?? body.contents) ?? stand.refuses(text);
    response.setHeader("content-type", body.stream && !wrong ? "text/event-stream" : "application/json");
    if (wrong) {
      refusals.push(wrong);
      response.statusCode = 400;
      response.end(JSON.stringify({ type: "error", error: { type: "invalid_request_error", message: wrong } }));
      return;
    }
    if (path.endsWith("/messages")) response.end(messages(body, text.length));
    else if (path.endsWith("/responses")) response.end(responses(body, text.length));
    else if (path.includes(":")) response.end(gemini(path.includes(":stream"), text.length));
    else response.end(chat(body, text.length, script(body)));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  stand.url = `http://127.0.0.1:${server.address().port}/v1`;
  stand.close = () => {
    server.closeAllConnections();
    server.close();
  };
  return stand;
}

function unpaired(messages) {
  const blocks = messages.flatMap((message) => (Array.isArray(message.content) ? message.content : []));
  const parts = messages.flatMap((message) => message.parts ?? []);
  const calls = [
    ...parts.filter((part) => part.functionCall).map((part) => part.functionCall.name),
    ...messages.flatMap((message) => message.tool_calls ?? []).map((call) => call.id),
    ...blocks.filter((block) => block.type === "tool_use").map((block) => block.id),
    ...messages.filter((item) => item.type === "function_call").map((item) => item.call_id),
  ];
  const results = [
    ...parts.filter((part) => part.functionResponse).map((part) => part.functionResponse.name),
    ...messages.filter((message) => message.role === "tool").map((message) => message.tool_call_id),
    ...blocks.filter((block) => block.type === "tool_result").map((block) => block.tool_use_id),
    ...messages.filter((item) => item.type === "function_call_output").map((item) => item.call_id),
  ];
  const same = JSON.stringify(calls.sort()) === JSON.stringify(results.sort());
  return same ? undefined : "calls and results are unpaired";
}

function events(parts) {
  return parts.map(([name, data]) => `${name ? `event: ${name}\n` : ""}data: ${JSON.stringify(data)}\n\n`).join("");
}

function chat(body, bytes, said) {
  const tokens = bytes >> 2;
  const usage = { prompt_tokens: tokens, completion_tokens: 5, total_tokens: tokens + 5 };
  usage.prompt_tokens_details = { cached_tokens: 0 };
  const about = { id: "chatcmpl-1", created: 1, model: body.model };
  const isText = typeof said === "string";
  const message = { role: "assistant", content: isText ? said : null, refusal: null };
  const reason = isText ? "stop" : "tool_calls";
  if (!isText) {
    message.tool_calls = said.map(([id, name, given], index) => {
      const call = { id, type: "function", function: { name, arguments: JSON.stringify(given) } };
      return body.stream ? { index, ...call } : call;
    });
  }
  if (!body.stream) {
    const choices = [{ index: 0, message, finish_reason: reason, logprobs: null }];
    return JSON.stringify({ ...about, object: "chat.completion", choices, usage });
  }
  about.object = "chat.completion.chunk";
  const chunk = (delta, finish_reason) => ({ ...about, choices: [{ index: 0, delta, finish_reason }] });
  const parts = [chunk(message, null), chunk({}, reason), { ...about, choices: [], usage }];
  return `${events(parts.map((part) => [undefined, part]))}data: [DONE]\n\n`;
}

function messages(body, bytes) {
  const usage = { input_tokens: bytes >> 2, output_tokens: 5 };
  Object.assign(usage, { cache_creation_input_tokens: 0, cache_read_input_tokens: 0 });
  const whole = { id: "msg_1", type: "message", role: "assistant", model: body.model, stop_sequence: null, usage };
  const content = [{ type: "text", text: "done" }];
  if (!body.stream) return JSON.stringify({ ...whole, content, stop_reason: "end_turn" });
  const type = (type, rest) => [type, { type, ...rest }];
  return events([
    type("message_start", { message: { ...whole, content: [], stop_reason: null } }),
    type("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
    type("content_block_delta", { index: 0, delta: { type: "text_delta", text: "done" } }),
    type("content_block_stop", { index: 0 }),
    type("message_delta", { delta: { stop_reason: "end_turn", stop_sequence: null }, usage: { output_tokens: 5 } }),
    type("message_stop", {}),
  ]);
}

function responses(body, bytes) {
  const tokens = bytes >> 2;
  const details = { input_tokens_details: { cached_tokens: 0 }, output_tokens_details: { reasoning_tokens: 0 } };
  const usage = { input_tokens: tokens, output_tokens: 5, total_tokens: tokens + 5, ...details };
  const content = [{ type: "output_text", text: "done", annotations: [], logprobs: [] }];
  const item = { id: "msg_1", type: "message", role: "assistant", status: "completed", content };
  const about = { id: "resp_1", object: "response", created_at: 1, model: body.model, error: null, tools: [] };
  const whole = { ...about, status: "completed", output: [item], usage };
  if (!body.stream) return JSON.stringify(whole);
  const parts = [
    ["response.created", { response: { ...about, status: "in_progress", output: [], usage: null } }],
    ["response.output_item.added", { output_index: 0, item }],
    ["response.output_item.done", { output_index: 0, item }],
    ["response.completed", { response: whole }],
  ];
  return events(parts.map(([type, rest], sequence_number) => [type, { type, sequence_number, ...rest }]));
}

function gemini(streams, bytes) {
  const tokens = bytes >> 2;
  const usageMetadata = { promptTokenCount: tokens, candidatesTokenCount: 5, totalTokenCount: tokens + 5 };
  const content = { role: "model", parts: [{ text: "done" }] };
  const whole = { candidates: [{ content, finishReason: "STOP", index: 0 }], usageMetadata };
  return streams ? events([[undefined, whole]]) : JSON.stringify(whole);
}
