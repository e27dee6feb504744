// The fold in process, and tokens and files.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Worker } from "node:worker_threads";

import { ClosedError, Folder, InputError, countTokens, gateway, references } from "../index.js";
import { provider } from "./provider.mjs";
import { request } from "./work.mjs";

const BUDGET = 20_000;
const FORMATS = ["chat", "messages", "responses"];
const here = path.dirname(fileURLToPath(import.meta.url));
const bytes = (body) => Buffer.from(JSON.stringify(body));

for (const format of FORMATS) {
  test(`bytes, texts and objects give the same: ${format}`, async () => {
    const folders = [0, 1, 2, 3].map(() => new Folder({ budget: BUDGET }));
    const decided = [];
    let changed = 0;
    for (let turns = 1; turns < 16; turns += 1) {
      const body = { ...request(format, turns), metadata: { kept: [1.5, "ü"] } };
      const given = [bytes(body), bytes(body).toString(), body, new Uint8Array(bytes(body))];
      const folded = await Promise.all(folders.map((folder, n) => folder.request(given[n])));
      for (const other of folded) assert.deepEqual(Buffer.from(other.body), Buffer.from(folded[0].body));
      assert.deepEqual(folded[0].json(), folded[2].json());
      assert.deepEqual(folded[0].json().metadata, body.metadata);
      assert.equal(folded[0].format, format);
      assert.ok(folded[0].sentTokens <= BUDGET);
      if (folded[0].isChanged) changed += 1;
      else assert.ok(folded[2].json() === body && bytes(body).equals(folded[0].body));
      decided.push(...folded[0].decisions);
    }
    assert.ok(changed > 3);
    const folds = decided.filter(({ what }) => what === "fold");
    assert.ok(folds.length > 0 && folds.every((fold) => fold.beforeTokens > fold.afterTokens && fold.reason !== ""));
  });

  test(`a restored folder goes on with the same bytes: ${format}`, () => {
    const whole = new Folder({ budget: BUDGET });
    let restored = new Folder({ budget: BUDGET });
    for (let turns = 1; turns < 16; turns += 1) {
      const snapshot = restored.snapshot();
      restored.close();
      restored = Folder.restore(snapshot, { budget: BUDGET });
      const [expected, folded] = [whole, restored].map((folder) => folder.requestSync(request(format, turns)));
      assert.deepEqual(Buffer.from(folded.body), Buffer.from(expected.body));
      const usage = { input_tokens: folded.body.length >> 2, output_tokens: 5, total_tokens: (folded.body.length >> 2) + 5 };
      assert.ok(whole.usage({ usage }).sent > 0 && restored.usage(usage, folded).billed > 0);
    }
  });
}

/** What arrived at the provider through a gateway, and its answers; nothing if the gateway was late. */
async function ofGateway(bodies) {
  const stand = await provider();
  const g = await gateway({ budget: BUDGET, upstream: stand.url });
  const answers = [];
  for (const body of bodies) {
    const headers = { "content-type": "application/json", authorization: "Bearer k" };
    const answer = await fetch(`${g.openai}/chat/completions`, { method: "POST", body, headers });
    answers.push(await answer.text());
  }
  const receipt = await g.close();
  stand.close();
  const isLate = Object.keys(receipt.passed).some((why) => why.startsWith("deciding took too long"));
  return isLate ? undefined : { answers, arrived: stand.bodies.map(({ text }) => text) };
}

test("what is sent is what the gateway sends, byte for byte", async (t) => {
  const bodies = Array.from({ length: 15 }, (_, n) => JSON.stringify(request("chat", n + 1)));
  let sent;
  // A machine that is busy may make the gateway late; then its bodies are those of a request before.
  for (let tries = 0; tries < 4 && sent === undefined; tries += 1) sent = await ofGateway(bodies);
  if (sent === undefined) return t.skip("the gateway was late each time: this machine is too busy to compare");
  const folder = new Folder({ budget: BUDGET });
  let changed = 0;
  for (const [n, body] of bodies.entries()) {
    const folded = await folder.request(body);
    assert.equal(Buffer.from(folded.body).toString(), sent.arrived[n], `request ${n}`);
    folder.usage(sent.answers[n], folded);
    if (folded.isChanged) changed += 1;
  }
  assert.ok(changed > 3);
});

test("what is no request is an error that says what was expected, and nothing is lost", async () => {
  const folder = new Folder({ budget: BUDGET });
  const said = (work) => work.then(() => assert.fail("it was taken"), (error) => error);
  for (const wrong of [Buffer.from(""), "hello", "5", "[]", {}, { messages: 5 }, Buffer.from([255, 254]), { messages: "a" }]) {
    const error = await said(folder.request(wrong));
    assert.ok(error instanceof InputError && error.sentence !== "" && error.hint.includes("OpenAI"), `${error}`);
    assert.throws(() => folder.requestSync(wrong), InputError);
  }
  for (const wrong of [undefined, null, 5, ["messages"], () => {}, Symbol("a"), 5n]) {
    assert.ok((await said(folder.request(wrong))) instanceof TypeError);
  }
  const circle = { messages: [] };
  circle.messages.push(circle);
  for (const wrong of [circle, { messages: [5n] }]) assert.ok((await said(folder.request(wrong))) instanceof InputError);
  assert.ok(!(await folder.request(request("chat", 1))).isChanged);
});

test("usage that is none or of no request is an error", async () => {
  const folder = new Folder({ budget: BUDGET });
  assert.throws(() => folder.usage({ input_tokens: 5, output_tokens: 1 }), /no request/);
  const folded = await folder.request(request("chat", 1));
  for (const wrong of [{}, "", { tokens: 5 }, Buffer.from([255])]) assert.throws(() => folder.usage(wrong), InputError);
  for (const wrong of [undefined, null, 5, []]) assert.throws(() => folder.usage(wrong), TypeError);
  assert.throws(() => folder.usage({ prompt_tokens: 5 }, 7), TypeError);
  assert.equal(folder.usage({ usage: { prompt_tokens: 50, completion_tokens: 1 } }, folded).sent, 50);
  assert.throws(() => folder.usage({ prompt_tokens: 50 }, folded), InputError);
  const other = await folder.request(request("chat", 2));
  folder.refused(other, { originalWasAccepted: true });
});

test("options that cannot be meant are refused", () => {
  for (const budget of [0, -1, 3_999, 5.5, Number.NaN, 2 ** 70]) assert.throws(() => new Folder({ budget }), InputError);
  const others = [{ budget: "64k" }, { bugdet: 5 }, { baseDir: 5 }, { prices: 5 }, { prices: [5] }, { policy: "plan" }, 5, null];
  for (const options of others) assert.throws(() => new Folder(options), TypeError);
  const nowhere = path.join(tmpdir(), "contexture-nowhere");
  const wrong = [{ prices: { input: -1 } }, { prices: { input: Number.NaN } }, { prices: { inptu: 1 } }, { policy: { tool: ["a"] } }, { format: "telegram" }];
  for (const options of [...wrong, { baseDir: nowhere }]) assert.throws(() => new Folder(options), InputError);
  assert.ok(new Folder({ prices: [{ name: "gpt", context: 24_000, writeHour: 2 }], policy: { tools: ["plan"] } }));
});

test("a closed folder and a snapshot that is none say so", async () => {
  const folder = new Folder({ budget: BUDGET });
  const snapshot = folder.snapshot();
  folder.close();
  folder.close();
  await assert.rejects(folder.request(request("chat", 1)), ClosedError);
  for (const use of [() => folder.usage({ prompt_tokens: 5 }), () => folder.snapshot(), () => folder.refused()]) {
    assert.throws(use, ClosedError);
  }
  for (const wrong of ["", "{}", snapshot.slice(0, -1)]) assert.throws(() => Folder.restore(wrong), InputError);
  for (const wrong of [undefined, 5, Buffer.from(snapshot)]) assert.throws(() => Folder.restore(wrong), TypeError);
});

test("prices and pins are heeded", async () => {
  // The newest call of a tool stays, and its output in one line, unless it is pinned.
  const plan = "First read, then think. ".repeat(40);
  const sent = async (options) => {
    const folder = new Folder(options);
    let folded;
    for (let turns = 1; turns < 16; turns += 1) {
      const body = request("chat", turns);
      const call = { id: "call_plan", type: "function", function: { name: "plan", arguments: "{}" } };
      const planned = [{ role: "assistant", content: null, tool_calls: [call] }];
      body.messages.splice(1, 0, ...planned, { role: "tool", tool_call_id: "call_plan", content: plan });
      folded = await folder.request(body);
    }
    return Buffer.from(folded.body).toString();
  };
  assert.ok(!(await sent({ budget: BUDGET })).includes(plan));
  assert.ok((await sent({ budget: BUDGET, policy: { tools: ["plan"] } })).includes(plan));
  assert.ok((await sent({ prices: { context: 24_000 } })).length < (await sent({})).length);
});

test("files are read beneath the base directory only, and tokens are counted", async () => {
  const top = mkdtempSync(path.join(tmpdir(), "contexture-"));
  const base = path.join(top, "base");
  mkdirSync(base);
  writeFileSync(path.join(base, "notes.md"), "the word is marmalade\n");
  writeFileSync(path.join(top, "secret.md"), "the word is plum\n");
  symlinkSync(path.join(top, "secret.md"), path.join(base, "link.md"));
  const text = "😀 #notes.md and #../secret.md and #link.md";
  const found = await references(text, base);
  assert.deepEqual(found.map((one) => one.text), ["the word is marmalade\n", undefined, undefined]);
  assert.deepEqual(found.map((one) => text.slice(one.start, one.end)), ["#notes.md", "#../secret.md", "#link.md"]);
  assert.ok(found[0].problem === undefined && found[1].problem && found[2].problem);
  const [lines] = await references("#notes.md:1-1");
  assert.deepEqual([lines.firstLine, lines.lastLine], [1, 1]);
  await assert.rejects(references("#a.md", path.join(top, "nowhere")), InputError);
  await assert.rejects(references(5), TypeError);
  const body = { model: "gpt-5", messages: [{ role: "user", content: text }] };
  const folded = await new Folder({ baseDir: base }).request(body);
  assert.ok(Buffer.from(folded.body).includes("marmalade") && !Buffer.from(folded.body).includes("plum"));
  assert.equal(countTokens("The quick brown fox jumps over the lazy dog."), 10);
  assert.equal(countTokens("a".repeat(400), "estimate"), 100);
  assert.throws(() => countTokens("a", "words"), InputError);
  assert.throws(() => countTokens(5), TypeError);
});

test("the event loop runs while a folder works, and closing meanwhile ends nothing badly", async () => {
  const folder = new Folder({ budget: 8_000 });
  let ticks = 0;
  const timer = setInterval(() => (ticks += 1), 0);
  const working = folder.request(request("chat", 40));
  folder.close();
  await working.catch((error) => assert.ok(error instanceof ClosedError));
  const other = new Folder({ budget: 8_000 });
  const before = ticks;
  await other.request(request("chat", 40));
  assert.ok(ticks > before + 1, `${before} to ${ticks}`);
  clearInterval(timer);
});

test("many threads use it at once", async () => {
  const program = `
    const { parentPort } = require("node:worker_threads");
    const { Folder } = require(${JSON.stringify(path.join(here, "../index.js"))});
    import(${JSON.stringify(path.join(here, "work.mjs"))}).then(async ({ request }) => {
      const folder = new Folder({ budget: ${BUDGET} });
      let folded;
      for (let turns = 1; turns < 12; turns += 1) folded = await folder.request(request("chat", turns));
      parentPort.postMessage(Buffer.from(folded.body).toString("base64"));
    });`;
  const sent = await Promise.all(
    [0, 1, 2, 3].map(
      () =>
        new Promise((resolve, reject) => {
          const worker = new Worker(program, { eval: true });
          worker.on("message", resolve).on("error", reject);
        }),
    ),
  );
  assert.ok(new Set(sent).size === 1 && sent[0].length > 1_000);
});

test("memory is freed, also of folders that nobody closes", async () => {
  const program = `
    const { Folder } = require("../index.js");
    import("./work.mjs").then(async ({ request }) => {
      const bodies = Array.from({ length: 11 }, (_, n) => Buffer.from(JSON.stringify(request("chat", n + 1))));
      const fold = async () => {
        for (let n = 0; n < 12; n += 1) {
          const folder = new Folder({ budget: ${BUDGET} });
          for (const body of bodies) await folder.request(body);
        }
        for (let n = 0; n < 3; n += 1) { gc(); await new Promise((resolve) => setTimeout(resolve, 20)); }
        return process.memoryUsage.rss();
      };
      const before = await fold();
      console.log((await fold() - before) / bodies.at(-1).length, process.memoryUsage().external / bodies.at(-1).length);
    });`;
  const ran = await promisify(execFile)(process.execPath, ["--expose-gc", "-e", program], { cwd: here });
  const [grown, told] = ran.stdout.split(" ").map(Number);
  // A folder takes more than ten times its longest request, so 12 that stay would take more than 120 times.
  assert.ok(grown < 60, ran.stdout);
  // What the garbage collector was told is taken back.
  assert.ok(told < 60, ran.stdout);
});
