// Loads the package without any other, and uses each part of it once. It says which Node it ran on.
"use strict";

const assert = require("node:assert/strict");
const { mkdtempSync } = require("node:fs");
const { tmpdir } = require("node:os");
const path = require("node:path");

const { Folder, Memory, countTokens, foldingFetch, gateway, references } = require("contexture-cli");

async function main() {
  const body = '{"model":"gpt-5","messages":[{"role":"user","content":"hello"}]}';
  const folder = new Folder({ budget: 64_000 });
  const folded = await folder.request(body);
  assert.equal(Buffer.from(folded.body).toString(), body);
  assert.equal(folder.usage({ prompt_tokens: 5, completion_tokens: 1, total_tokens: 6 }, folded).sent, 5);
  const fetch = foldingFetch({ fetch: async (_, init) => new Response(init.body) });
  assert.equal(await (await fetch("http://127.0.0.1:9/v1/chat/completions", { method: "POST", body })).text(), body);
  assert.equal(countTokens("The quick brown fox jumps over the lazy dog."), 10);
  assert.equal((await references("see #a.md"))[0].path, "a.md");
  const memory = await Memory.open(path.join(mkdtempSync(path.join(tmpdir(), "contexture-")), "memory.db"));
  await memory.remember("The release is on Friday.");
  assert.equal((await memory.facts()).length, 1);
  await memory.close();
  const g = await gateway({ upstream: "http://127.0.0.1:9" });
  assert.equal((await g.close()).requests, 0);
  console.log("the package works with Node", process.versions.node);
}

main();
