// The transport: what is sent by the providers' clients, after a restart, and when a provider refuses.
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

import conversations from "../conversations.js";
import { Folder, InputError, StoreError, foldingFetch } from "../index.js";
import { provider } from "./provider.mjs";
import { chat, gemini, request } from "./work.mjs";

const BUDGET = 20_000;
const MODULES = 16;

function directory() {
  return mkdtempSync(join(tmpdir(), "contexture-"));
}

function ask(stand, fetch, messages) {
  const client = new OpenAI({ baseURL: stand.url, apiKey: "k", maxRetries: 0, fetch });
  return client.chat.completions.create({ model: "gpt-5", messages });
}

function sent(stand) {
  return stand.bodies.map(({ text }) => JSON.parse(text).messages);
}

/** What was sent is accepted by the provider, within the budget, and folded. */
function check(stand) {
  assert.deepEqual(stand.refusals, []);
  assert.equal(stand.bodies.length, MODULES - 1);
  assert.ok(Math.max(...stand.bodies.map(({ text }) => text.length)) / 4 < BUDGET * 1.2);
  assert.ok(stand.bodies.at(-1).text.includes("Read all modules"));
}

for (const how of ["whole", "streamed"]) {
  for (const format of ["chat", "responses", "messages"]) {
    test(`the clients of OpenAI and Anthropic: ${format}, ${how}`, async (context) => {
      const bills = context.mock.method(Folder.prototype, "usage");
      const stand = await provider();
      const fetch = foldingFetch({ budget: BUDGET });
      const options = { apiKey: "k", maxRetries: 0, fetch };
      const openai = new OpenAI({ baseURL: stand.url, ...options });
      const anthropic = new Anthropic({ baseURL: stand.url.slice(0, -3), ...options });
      const place = { chat: openai.chat.completions, responses: openai.responses, messages: anthropic.messages }[format];
      const stream = how === "streamed" ? { stream: true } : {};
      const counted = how === "streamed" && format === "chat" ? { stream_options: { include_usage: true } } : {};
      for (let turns = 1; turns < MODULES; turns += 1) {
        const answer = await place.create({ ...request(format, turns), ...stream, ...counted });
        if (how === "streamed") for await (const _ of answer) assert.ok(_);
      }
      stand.close();
      check(stand);
      const billed = bills.mock.calls.filter(({ error }) => error === undefined);
      assert.equal(billed.length, MODULES - 1, "what was billed is told, for each request");
    });
  }
}

for (const path of ["generateContent", "streamGenerateContent?alt=sse"]) {
  test(`a path of Gemini: ${path}`, async () => {
    const stand = await provider();
    const fetch = foldingFetch({ budget: BUDGET });
    for (let turns = 1; turns < MODULES; turns += 1) {
      const address = `${stand.url}beta/models/gemini-3:${path}`;
      const response = await fetch(address, { method: "POST", body: JSON.stringify({ contents: gemini(turns) }) });
      assert.equal(response.status, 200);
      await response.text();
    }
    stand.close();
    check(stand);
  });
}

test("a program that was ended goes on with the same bytes", async () => {
  const stand = await provider();
  const store = join(directory(), "store");
  const first = foldingFetch({ budget: BUDGET, store });
  const other = [{ role: "user", content: "Something else." }];
  for (let turns = 1; turns < MODULES; turns += 1) {
    await ask(stand, first, chat(turns));
    await ask(stand, first, other);
  }
  await ask(stand, foldingFetch({ budget: BUDGET, store }), chat(MODULES - 1));
  await ask(stand, foldingFetch({ budget: BUDGET }), chat(MODULES - 1));
  stand.close();
  const [before, , after, anew] = sent(stand).slice(-4);
  assert.deepEqual(before, after);
  assert.notDeepEqual(anew, before);
  assert.equal(readdirSync(store).length, 1, "what was never folded is not kept");
});

test("a store that cannot be used is said", async () => {
  const stand = await provider();
  const place = directory();
  writeFileSync(join(place, "file"), "");
  assert.throws(() => foldingFetch({ budget: BUDGET, store: join(place, "file") }), StoreError);
  const store = join(place, "store");
  await ask(stand, foldingFetch({ budget: BUDGET, store }), chat(12));
  const [kept] = readdirSync(store);
  writeFileSync(join(store, kept), "{");
  const warned = new Promise((resolve) => process.once("warning", resolve));
  await ask(stand, foldingFetch({ budget: BUDGET, store }), chat(12));
  stand.close();
  assert.match((await warned).message, /go on from/);
  const [one, two] = sent(stand);
  assert.deepEqual(one, two);
});

test("a fold that a provider refuses is sent as it was", async () => {
  const stand = await provider();
  const store = directory();
  stand.refuses = (text) => (text.length < 100_000 ? "too short" : undefined);
  const first = foldingFetch({ budget: BUDGET, store });
  for (const turns of [12, 13]) await ask(stand, first, chat(turns));
  // Also in the process after this one.
  await ask(stand, foldingFetch({ budget: BUDGET, store }), chat(14));
  stand.close();
  const accepted = stand.bodies.filter(({ text }) => text.length >= 100_000).map(({ text }) => JSON.parse(text).messages);
  assert.deepEqual(accepted, [chat(12), chat(13), chat(14)]);
  assert.ok(stand.refusals.length >= 1 && stand.refusals.length <= 3);
});

test("what is no conversation passes", async () => {
  const bodies = [];
  const send = async (_, { body }) => {
    bodies.push(body);
    return new Response("{}");
  };
  const fetch = foldingFetch({ budget: BUDGET, fetch: send });
  const asked = ["{}", '{"messages":[]}', '{"messages":5}', '{"messages":[5]}', "[]", "null", "no JSON"];
  for (const body of asked) await fetch("http://127.0.0.1:9/v1/messages", { method: "POST", body });
  await fetch("http://127.0.0.1:9/v1/embeddings", { method: "POST", body: "{}" });
  assert.deepEqual(bodies, [...asked, "{}"]);
});

test("options that cannot be used are said when a transport is made", () => {
  assert.throws(() => foldingFetch({ budget: 0 }), InputError);
  assert.throws(() => foldingFetch({ bugdet: 5 }), TypeError);
  assert.throws(() => foldingFetch({ store: true }), TypeError);
});

test("conversations that were not used for long are freed", async () => {
  const { Conversations, MOST_FOLDERS } = conversations;
  const held = new Conversations({ budget: BUDGET });
  const of = async (content) => {
    const body = JSON.stringify({ messages: [{ role: "system", content: content.repeat(2) }, { role: "user", content }] });
    return (await held.fold("/v1/chat/completions", body)).conversation;
  };
  const first = await of("one");
  assert.equal(await of("one"), first);
  assert.notEqual(await of("two"), first);
  for (let number = 0; number < MOST_FOLDERS; number += 1) await of(String(number));
  assert.notEqual(await of("one"), first);
});
