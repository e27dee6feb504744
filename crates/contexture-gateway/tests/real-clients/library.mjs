// A loop around the official TypeScript libraries: library.mjs FORMAT STREAMS TASK

import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";

const require = createRequire(`${process.env.AGENTS_DIR}/`);
const [format, streams, task] = [process.argv[2], process.argv[3] === "true", process.argv[4]];
const schema = { type: "object", properties: { command: { type: "string" } }, required: ["command"] };
const system = "You run commands until the task is done.";
const output = (command) => execFileSync("bash", ["-c", command], { encoding: "utf8" });

async function messages() {
  const { Anthropic } = require("@anthropic-ai/sdk");
  const client = new Anthropic();
  const said = [{ role: "user", content: task }];
  const tools = [{ name: "bash", description: "Runs a command.", input_schema: schema }];
  for (;;) {
    const request = { model: "claude-sonnet-4-5", max_tokens: 1000, system, tools, messages: said, cache_control: { type: "ephemeral" } };
    const answer = streams ? await client.messages.stream(request).finalMessage() : await client.messages.create(request);
    said.push({ role: "assistant", content: answer.content });
    const calls = answer.content.filter((block) => block.type === "tool_use");
    if (calls.length === 0) return answer.content[0].text;
    said.push({ role: "user", content: calls.map((call) => ({ type: "tool_result", tool_use_id: call.id, content: output(call.input.command) })) });
  }
}

async function chat() {
  const { OpenAI } = require("openai");
  const client = new OpenAI();
  const said = [{ role: "system", content: system }, { role: "user", content: task }];
  const tools = [{ type: "function", function: { name: "bash", description: "Runs a command.", parameters: schema } }];
  for (;;) {
    const request = { model: "gpt-5.1", tools, messages: said };
    const answer = streams
      ? await client.chat.completions.stream({ ...request, stream_options: { include_usage: true } }).finalChatCompletion()
      : await client.chat.completions.create(request);
    const message = answer.choices[0].message;
    said.push(message);
    if (!message.tool_calls?.length) return message.content;
    for (const call of message.tool_calls) said.push({ role: "tool", tool_call_id: call.id, content: output(JSON.parse(call.function.arguments).command) });
  }
}

async function responses() {
  const { OpenAI } = require("openai");
  const client = new OpenAI();
  const said = [{ role: "user", content: task }];
  const tools = [{ type: "function", name: "bash", description: "Runs a command.", parameters: schema, strict: false }];
  for (;;) {
    const request = { model: "gpt-5.1", instructions: system, tools, input: said, store: false };
    const answer = streams ? await client.responses.stream(request).finalResponse() : await client.responses.create(request);
    said.push(...answer.output);
    const calls = answer.output.filter((item) => item.type === "function_call");
    if (calls.length === 0) return answer.output_text;
    for (const call of calls) said.push({ type: "function_call_output", call_id: call.call_id, output: output(JSON.parse(call.arguments).command) });
  }
}

console.log(await { messages, chat, responses }[format]());
