// The gateway, with the clients that people use.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { inspect, promisify } from "node:util";

import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

import { ClosedError, GatewayError, InputError, gateway } from "../index.js";
import { provider } from "./provider.mjs";
import { chat } from "./work.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
for (const name of ["OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"]) delete process.env[name];

async function withProvider(work) {
  const stand = await provider();
  try {
    await work(stand);
  } finally {
    stand.close();
  }
}

function isAlive(pid) {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1][0] !== "Z";
  } catch {
    return false;
  }
}

async function until(isSo) {
  const end = Date.now() + 60_000;
  while (!isSo()) {
    assert.ok(Date.now() < end);
    await sleep(20);
  }
}

test("both clients are answered, streaming too, and the receipt counts them", () =>
  withProvider(async (stand) => {
    const g = await gateway({ upstream: stand.url });
    const client = new OpenAI({ baseURL: g.openai, apiKey: "sk-of-the-user" });
    const messages = [{ role: "user", content: "hello" }];
    const answer = await client.chat.completions.create({ model: "gpt-5", messages });
    assert.equal(answer.choices[0].message.content, "done");
    let said = "";
    for await (const chunk of await client.chat.completions.create({ model: "gpt-5", messages, stream: true })) {
      said += chunk.choices[0]?.delta.content ?? "";
    }
    assert.equal(said, "done");
    const other = new Anthropic({ baseURL: g.anthropic, apiKey: "sk-ant-of-the-user" });
    const asked = { model: "claude-opus-4-8", max_tokens: 100, messages };
    assert.equal((await other.messages.create(asked)).content[0].text, "done");
    assert.equal(await other.messages.stream(asked).finalText(), "done");
    assert.throws(() => g.receipt, ClosedError);
    const receipt = await g.close();
    assert.equal(receipt.requests, 4);
    assert.deepEqual(receipt.failed, {});
    assert.equal(receipt.output, 20);
    assert.equal(await g.close(), receipt);
    assert.equal(g.receipt, receipt);
    assert.equal(stand.bodies[0].headers.authorization, "Bearer sk-of-the-user");
    assert.equal(stand.bodies[2].headers["x-api-key"] ?? stand.bodies[2].headers.authorization.slice(7), "sk-ant-of-the-user");
  }));

test("a long conversation is folded", () =>
  withProvider(async (stand) => {
    const g = await gateway({ upstream: stand.url, budget: 20_000 });
    const client = new OpenAI({ baseURL: g.openai, apiKey: "k" });
    for (let turns = 1; turns < 18; turns += 1) {
      await client.chat.completions.create({ model: "gpt-5", messages: chat(turns) });
    }
    const receipt = await g.close();
    assert.ok(receipt.folds.length > 0 && receipt.changed > 0, inspect(receipt));
    assert.ok(receipt.folds[0].beforeTokens > receipt.folds[0].afterTokens);
    assert.ok(receipt.sent < receipt.came);
    assert.deepEqual(stand.refusals, []);
    assert.ok(stand.bodies.at(-1).text.length < JSON.stringify(chat(17)).length / 2);
  }));

test("who has no key is refused, and the key is in no log", () =>
  withProvider(async (stand) => {
    const g = await gateway({ upstream: stand.url });
    const [, , host, secret] = g.openai.split("/");
    const answer = await fetch(`http://${host}/openai/chat/completions`, { method: "POST", body: "{}" });
    assert.equal(answer.status, 401);
    assert.ok(!inspect(g).includes(secret) && !JSON.stringify(g).includes(secret) && !`${g}`.includes(secret));
    assert.equal((await g.close()).refused, 1);
    assert.equal(stand.bodies.length, 0);
  }));

test("what cannot be used is said by an error", async () => {
  const said = (options) =>
    gateway(options).then(
      () => assert.fail("it started"),
      (error) => error,
    );
  for (const budget of [0, -1, 3_999, Number.NaN, 5.5]) {
    const error = await said({ budget });
    assert.ok(error instanceof InputError && / at least 4000$/.test(error.message), `${error}`);
  }
  assert.ok((await said({ upstream: "no address" })) instanceof InputError);
  assert.ok((await said({ budget: "64k" })) instanceof TypeError);
  assert.ok((await said({ bugdet: 5 })) instanceof TypeError);
  const foreign = path.join(mkdtempSync(path.join(tmpdir(), "contexture-")), "text.db");
  writeFileSync(foreign, "this is no database, and it has enough bytes to be seen as none");
  const failed = await said({ store: foreign });
  assert.ok(failed instanceof GatewayError && failed.hint !== undefined && failed.message.includes("hint: "));
  assert.match((await said({ binary: "/bin/nothing-here" })).message, /start `\/bin\/nothing-here`/);
  assert.match((await said({ binary: "/bin/true" })).message, /did not start/);
});

test("a gateway that died is said to have, when it is closed", async () => {
  const g = await gateway({ upstream: "http://127.0.0.1:9" });
  const { port } = new URL(g.url);
  const pids = await promisify(execFile)("sh", ["-c", `ps -o pid=,args= --ppid ${process.pid}`]);
  const line = pids.stdout.split("\n").find((text) => text.includes("--for-parent"));
  process.kill(Number.parseInt(line, 10), "SIGKILL");
  await assert.rejects(g.close(), GatewayError);
  await assert.rejects(fetch(`http://127.0.0.1:${port}/`));
});

test("it ends with a program that is killed, and does not keep one alive that has ended", async () => {
  const start = 'const { gateway } = require("../index.js");gateway({ upstream: "http://127.0.0.1:9" }).then(async (g) => {' +
    'const args = ["-c", `ps -o pid=,args= --ppid ${process.pid} | grep -- --for-parent | head -1`];' +
    'console.log(Number.parseInt(require("node:child_process").execFileSync("sh", args).toString(), 10));';
  for (const [then, isKilled] of [["setInterval(() => {}, 1000)", true], ["", false], ["process.exit(3)", false]]) {
    const child = spawn(process.execPath, ["-e", `${start}${then}});`], { cwd: here, stdio: ["ignore", "pipe", "inherit"] });
    const [said] = await once(child.stdout, "data");
    const pid = Number.parseInt(said.toString(), 10);
    assert.ok(pid > 0);
    const ended = once(child, "exit");
    if (isKilled) child.kill("SIGKILL");
    await ended;
    await until(() => !isAlive(pid));
  }
});

test("a program with `await using`, compiled by the strictest settings", () =>
  withProvider(async (stand) => {
    const program = path.join(here, "built/tests/agent.mjs");
    const ran = await promisify(execFile)(process.execPath, [program], { env: { ...process.env, PROVIDER: stand.url } });
    assert.equal(ran.stdout, "done\n1\n");
  }));

test("every block of the documentation runs", () =>
  withProvider(async (stand) => {
    const place = mkdtempSync(path.join(tmpdir(), "contexture-"));
    const keys = { OPENAI_API_KEY: "sk-any", ANTHROPIC_API_KEY: "sk-ant-any" };
    const addresses = { OPENAI_BASE_URL: stand.url, ANTHROPIC_BASE_URL: stand.url.slice(0, -3) };
    const blocks = readdirSync(path.join(here, "built/tests/built/docs")).filter((name) => name.endsWith(".mjs"));
    assert.ok(blocks.length >= 8);
    for (const block of blocks) {
      const program = path.join(here, "built/tests/built/docs", block);
      const env = { ...process.env, ...keys, ...addresses };
      const ran = await promisify(execFile)(process.execPath, [program], { env, cwd: place });
      assert.notEqual(ran.stdout, "", block);
    }
  }));
