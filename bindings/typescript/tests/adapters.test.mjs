// Adapters, each with the real framework or client, a scripted model, real calls of tools, and folds.
import assert from "node:assert/strict";
import { test } from "node:test";

import { createOpenAI } from "@ai-sdk/openai";
import Anthropic from "@anthropic-ai/sdk";
import { Agent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { generateText, isStepCount, jsonSchema, streamText, tool, wrapLanguageModel } from "ai";
import OpenAI from "openai";

import { foldingFetch } from "../adapters/clients.js";
import { folding } from "../adapters/ai-sdk.js";
import { Folding } from "../adapters/mastra.js";
import { foldPrompt } from "../adapters/prompt.js";
import { Folder, InputError } from "../index.js";
import { provider } from "./provider.mjs";
import { chat, fileText, request } from "./work.mjs";

process.env.MASTRA_TELEMETRY_DISABLED = "1";
const BUDGET = 20_000;
const MODULES = 16;
const SCHEMA = jsonSchema({ type: "object", properties: { path: { type: "string" } }, required: ["path"] });

/** A model that reads one module after the other, and then says so. */
function reading() {
  let asked = 0;
  return provider(() => {
    asked += 1;
    return asked > MODULES ? "all are read" : [[`call_${asked}`, "read_file", { path: `src/m_${asked}.py` }]];
  });
}

const execute = async ({ path }) => fileText(Number(path.match(/\d+/)[0]));

/** What was sent is accepted by the provider, within the budget, and folded; and what was billed is known. */
function check(stand, folder) {
  assert.deepEqual(stand.refusals, []);
  assert.equal(stand.bodies.length, MODULES + 1);
  assert.ok(Math.max(...stand.bodies.map(({ text }) => text.length)) / 4 < BUDGET * 1.2);
  const last = stand.bodies.at(-1).text;
  assert.ok(last.includes("Read all modules") && last.includes("src/m_1.py"), last.slice(0, 2_000));
  assert.throws(() => folder.usage({ input_tokens: 5, output_tokens: 5 }), /no request/);
}

for (const how of ["generated", "streamed"]) {
  test(`an agent of the Vercel AI SDK: ${how}`, async () => {
    const stand = await reading();
    const middleware = folding({ budget: BUDGET });
    const openai = createOpenAI({ baseURL: stand.url, apiKey: "k" });
    const model = wrapLanguageModel({ model: openai.chat("gpt-5"), middleware });
    const tools = { read_file: tool({ description: "Reads a file", inputSchema: SCHEMA, execute }) };
    const options = { model, tools, instructions: "Be careful.", prompt: "Read all modules.", stopWhen: isStepCount(40) };
    const result = how === "generated" ? await generateText(options) : streamText(options);
    assert.equal(await result.text, "all are read");
    assert.equal((await result.steps).length, MODULES + 1);
    stand.close();
    check(stand, middleware.folder);
    assert.ok(stand.bodies.at(-1).text.includes("Be careful."));
  });

  test(`an agent of Mastra: ${how}`, async () => {
    const stand = await reading();
    const processor = new Folding({ budget: BUDGET });
    const read = createTool({ id: "read_file", description: "Reads a file", inputSchema: SCHEMA, execute });
    const model = createOpenAI({ baseURL: stand.url, apiKey: "k" }).chat("gpt-5");
    const about = { id: "reader", name: "reader", instructions: "Be careful.", model, tools: { read_file: read } };
    const agent = new Agent({ ...about, inputProcessors: [processor] });
    const asked = how === "generated" ? agent.generate : agent.stream;
    const result = await asked.call(agent, "Read all modules.", { maxSteps: 40 });
    assert.equal(await result.text, "all are read");
    assert.equal((await result.steps).length, MODULES + 1);
    stand.close();
    check(stand, processor.folder);
  });

  for (const format of ["chat", "responses", "messages"]) {
    test(`the clients of OpenAI and Anthropic: ${format}, ${how}`, async () => {
      const stand = await provider();
      const fetch = foldingFetch({ budget: BUDGET });
      const openai = new OpenAI({ baseURL: stand.url, apiKey: "k", fetch });
      const anthropic = new Anthropic({ baseURL: stand.url.slice(0, -3), apiKey: "k", fetch });
      const place = { chat: openai.chat.completions, responses: openai.responses, messages: anthropic.messages }[format];
      const stream = how === "streamed" ? { stream: true } : {};
      const counted = how === "streamed" && format === "chat" ? { stream_options: { include_usage: true } } : {};
      for (let turns = 1; turns < MODULES; turns += 1) {
        const answer = await place.create({ ...request(format, turns), ...stream, ...counted });
        if (how === "streamed") for await (const _ of answer) assert.ok(_);
        assert.throws(() => fetch.folder.usage({ input_tokens: 5, output_tokens: 5 }), InputError);
      }
      stand.close();
      assert.deepEqual(stand.refusals, []);
      assert.ok(Math.max(...stand.bodies.map(({ text }) => text.length)) / 4 < BUDGET * 1.2);
      assert.equal(stand.bodies.length, MODULES - 1);
    });
  }
}

test("a fold that a provider refuses is sent as it was, and nothing more is folded", async () => {
  const stand = await provider();
  stand.refuses = (text) => (text.length < 100_000 ? "too short" : undefined);
  const client = new OpenAI({ baseURL: stand.url, apiKey: "k", maxRetries: 0, fetch: foldingFetch({ budget: BUDGET }) });
  for (const turns of [12, 13]) await client.chat.completions.create(request("chat", turns));
  stand.close();
  const [folded, original, after] = stand.bodies.map(({ text }) => JSON.parse(text).messages);
  assert.notDeepEqual(folded, original);
  assert.deepEqual([original, after], [chat(12), chat(13)]);
});

test("prompts with parallel calls, reasoning and images stay whole where they are kept", async () => {
  const folder = new Folder({ budget: 12_000, format: "chat" });
  const image = { type: "file", mediaType: "image/png", data: { type: "data", data: new Uint8Array([1, 2, 3]) } };
  const first = { role: "user", content: [{ type: "text", text: "Read all modules." }, image] };
  const prompt = [{ role: "system", content: "Be careful." }, first];
  let changed = 0;
  for (let n = 0; n < 24; n += 2) {
    const call = (id) => ({ type: "tool-call", toolCallId: `call_${id}`, toolName: "read_file", input: { path: `src/m_${id}.py` } });
    const result = (id, output) => ({ type: "tool-result", toolCallId: `call_${id}`, toolName: "read_file", output });
    const reasoning = { type: "reasoning", text: `Two more, from ${n}.`, providerOptions: { openai: { itemId: `rs_${n}` } } };
    prompt.push({ role: "assistant", content: [reasoning, call(n), call(n + 1)] });
    const outputs = [{ type: "text", value: fileText(n) }, { type: "json", value: { text: fileText(n + 1) } }];
    prompt.push({ role: "tool", content: outputs.map((output, at) => result(n + at, output)) });
    const { folded, prompt: sent } = await foldPrompt(folder, { model: "gpt-5", prompt });
    const parts = sent.flatMap(({ content }) => (Array.isArray(content) ? content : []));
    const ids = (type) => parts.filter((part) => part.type === type).map((part) => part.toolCallId);
    assert.deepEqual(ids("tool-call"), ids("tool-result"));
    assert.equal(sent[0], prompt[0]);
    assert.ok(sent.includes(first), "the image is with its question");
    assert.deepEqual(sent.at(-1), prompt.at(-1));
    assert.equal(sent.at(-2), prompt.at(-2));
    assert.ok(sent.every(({ content }) => content.length > 0));
    if (folded.isChanged) changed += 1;
  }
  assert.ok(changed > 3);
});

test("options that cannot be used are said when an adapter is made", () => {
  for (const make of [folding, foldingFetch, (options) => new Folding(options)]) {
    assert.throws(() => make({ budget: 0 }), InputError);
    assert.throws(() => make({ bugdet: 5 }), TypeError);
  }
});
