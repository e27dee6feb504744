// Frameworks, each by base URL and by transport, with a scripted model, real calls of tools, and folds.
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { inspect } from "node:util";

import { createOpenAI } from "@ai-sdk/openai";
import { Agent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { generateText, isStepCount, jsonSchema, streamText, tool } from "ai";

import { foldingFetch, gateway } from "../index.js";
import { provider } from "./provider.mjs";
import { fileText } from "./work.mjs";

process.env.MASTRA_TELEMETRY_DISABLED = "1";
const BUDGET = 20_000;
const MODULES = 16;
const SCHEMA = jsonSchema({ type: "object", properties: { path: { type: "string" } }, required: ["path"] });

const execute = async ({ path }) => fileText(Number(path.match(/\d+/)[0]));

/** A model that reads one module after the other, and then says so. */
function reading() {
  let asked = 0;
  return () => {
    asked += 1;
    return asked > MODULES ? "all are read" : [[`call_${asked}`, "read_file", { path: `src/m_${asked}.py` }]];
  };
}

const FRAMEWORKS = {
  "Vercel AI SDK": (model, streams) => {
    const tools = { read_file: tool({ description: "Reads a file", inputSchema: SCHEMA, execute }) };
    const options = { model, tools, instructions: "Be careful.", prompt: "Read all modules.", stopWhen: isStepCount(40) };
    return streams ? streamText(options) : generateText(options);
  },
  Mastra: (model, streams) => {
    const read = createTool({ id: "read_file", description: "Reads a file", inputSchema: SCHEMA, execute });
    const agent = new Agent({ id: "reader", name: "reader", instructions: "Be careful.", model, tools: { read_file: read } });
    return agent[streams ? "stream" : "generate"]("Read all modules.", { maxSteps: 40 });
  },
};

for (const [name, ask] of Object.entries(FRAMEWORKS)) {
  for (const door of ["base URL", "transport"]) {
    for (const streams of [false, true]) {
      test(`${name} by ${door}, ${streams ? "streamed" : "whole"}`, async () => {
        const stand = await provider(reading());
        const g = door === "transport" ? undefined : await gateway({ upstream: stand.url, budget: BUDGET });
        const place = g === undefined ? { baseURL: stand.url, fetch: foldingFetch({ budget: BUDGET }) } : { baseURL: g.openai };
        const result = await ask(createOpenAI({ apiKey: "k", ...place }).chat("gpt-5"), streams);
        assert.equal(await result.text, "all are read");
        assert.equal((await result.steps).length, MODULES + 1);
        const receipt = await g?.close();
        stand.close();
        assert.ok(g === undefined || receipt.folds.length > 0, inspect(receipt));
        assert.deepEqual(stand.refusals, []);
        assert.equal(stand.bodies.length, MODULES + 1);
        // A gateway that is late sends what is above its budget by up to a half.
        const most = BUDGET * (g === undefined ? 1.2 : 1.8);
        assert.ok(Math.max(...stand.bodies.map(({ text }) => text.length)) / 4 < most);
        const last = stand.bodies.at(-1).text;
        for (const kept of ["Read all modules", "src/m_1.py", "Be careful."]) assert.ok(last.includes(kept), last.slice(0, 2_000));
      });
    }
  }
}

for (const [name, ask] of Object.entries(FRAMEWORKS)) {
  test(`${name} goes on after restarts and a refusal`, async () => {
    const stand = await provider(reading());
    stand.refuses = () => (stand.bodies.length === 10 && stand.refusals.length === 0 ? "not in this form" : undefined);
    const store = mkdtempSync(join(tmpdir(), "contexture-"));
    // Each request is of a program that was started again.
    const fetch = (...given) => foldingFetch({ budget: BUDGET, store })(...given);
    const result = await ask(createOpenAI({ apiKey: "k", baseURL: stand.url, fetch }).chat("gpt-5"), false);
    assert.equal(await result.text, "all are read");
    stand.close();
    // It was folded when it was refused, and then sent as it was, of which the framework saw nothing.
    assert.deepEqual(stand.refusals, ["not in this form"]);
    assert.equal(stand.bodies.length, MODULES + 2);
    const sizes = stand.bodies.map(({ text }) => text.length / 4);
    assert.ok(sizes[9] < BUDGET * 1.2 && sizes[10] > BUDGET * 1.2);
    // What is necessary is folded all the same.
    assert.ok(Math.max(...sizes.slice(11)) < BUDGET * 1.2);
    assert.equal(readdirSync(store).length, 1);
  });
}
