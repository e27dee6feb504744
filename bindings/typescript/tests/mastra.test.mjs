// An agent of Mastra through the gateway.
import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";

import { createOpenAI } from "@ai-sdk/openai";
import { Agent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { jsonSchema } from "ai";

import { gateway } from "../index.js";
import { provider } from "./provider.mjs";

process.env.MASTRA_TELEMETRY_DISABLED = "1";

for (const how of ["generate", "stream"]) {
  test(`an agent of Mastra needs no adapter either: ${how}`, async () => {
    let asked = 0;
    const stand = await provider(() => {
      asked += 1;
      return asked > 16 ? "all are read" : [[`call_${asked}`, "read_file", { path: `src/m_${asked}.py` }]];
    });
    const g = await gateway({ upstream: stand.url, budget: 20_000 });
    const schema = { type: "object", properties: { path: { type: "string" } }, required: ["path"] };
    const lines = (path) => Array.from({ length: 260 }, (_, n) => `def f_${n}(value): return value * ${n} # ${path}`);
    const execute = async ({ path }) => lines(path).join("\n");
    const tool = createTool({ id: "read_file", description: "Reads a file", inputSchema: jsonSchema(schema), execute });
    const model = createOpenAI({ baseURL: g.openai, apiKey: "k" }).chat("gpt-5");
    const agent = new Agent({ id: "reader", name: "reader", instructions: "Read.", model, tools: { read_file: tool } });
    const text = await (await agent[how]("Read all modules.", { maxSteps: 40 })).text;
    const receipt = await g.close();
    stand.close();
    assert.equal(text, "all are read");
    assert.ok(receipt.requests === 17 && receipt.folds.length > 0, inspect(receipt));
    assert.deepEqual(stand.refusals, []);
  });
}
