// Memory in process.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";

import { ClosedError, InputError, Memory, StoreError } from "../index.js";
import { programs, withServer } from "./postgres.mjs";

const directory = () => mkdtempSync(path.join(tmpdir(), "contexture-"));

test("facts are remembered, found and forgotten", async () => {
  const store = path.join(directory(), "memory.db");
  const memory = await Memory.open(store, { user: "ann" });
  const first = await memory.remember("Ann prefers tabs.", { entity: "Ann", attribute: "prefers", value: "tabs" });
  await memory.remember("The release is on Friday.");
  const facts = await memory.facts();
  assert.deepEqual(facts.map(({ text }) => text), ["Ann prefers tabs.", "The release is on Friday."]);
  const { entity, attribute, value, saidBy, isCurrent } = facts[0];
  assert.deepEqual([entity, attribute, value, saidBy, isCurrent], ["Ann", "prefers", "tabs", "user", true]);
  for (const whose of [{ user: "bob" }, { project: "ann" }]) {
    const other = await Memory.open(store, whose);
    assert.deepEqual(await other.facts(), []);
    await other.close();
  }
  const command = ["memory", "show", "--store", store, "--resource", "ann"];
  const shown = await promisify(execFile)(process.env.CONTEXTURE_BINARY, command);
  assert.ok(shown.stdout.includes("Ann prefers tabs."), "the program reads the same memory");
  assert.equal(await memory.forget(first), 1);
  await assert.rejects(memory.forget(first), InputError);
  await memory.close();
  assert.ok(!readFileSync(store).includes("prefers tabs"));
});

test("PostgreSQL is a store too", async (t) => {
  const bin = programs();
  if (bin === undefined) {
    assert.notEqual(process.env.CONTEXTURE_REQUIRE_POSTGRES, "1");
    return t.skip("PostgreSQL is not installed");
  }
  await withServer(bin, async (address) => {
    const first = await Memory.open(address, { user: "ann" });
    const name = await first.remember("Ann prefers tabs.");
    const said = [{ role: "user", content: "The dentist is on Tuesday at noon." }];
    assert.equal(await first.importSession(said, { thread: "one" }), 1);
    await first.close();
    const [memory, other] = await Promise.all(["ann", "bob"].map((user) => Memory.open(address, { user })));
    assert.deepEqual((await memory.facts()).map(({ text }) => text), ["Ann prefers tabs."]);
    assert.ok((await memory.search("When is the dentist?")).text.includes("Tuesday"));
    assert.equal(await memory.forget(name), 1);
    assert.deepEqual(await memory.facts(), []);
    assert.deepEqual([await other.facts(), (await other.search("When is the dentist?")).passages], [[], []]);
    await Promise.all([memory.close(), other.close()]);
  });
});

test("sessions are searched, without secrets", async () => {
  const store = path.join(directory(), "memory.db");
  const memory = await Memory.open(store);
  const session = [
    { role: "user", content: "The dentist is on Tuesday at noon.", at: new Date("2026-01-31T12:00:00Z"), id: 1 },
    { role: "assistant", content: [{ type: "text", text: "Noted: the dentist on Tuesday." }], id: 2 },
    { role: "tool", tool_call_id: "x", content: "an output" },
    { role: "user", content: `My key is sk-ant-api03-${"a1B2".repeat(24)}`, id: 3 },
  ];
  assert.equal(await memory.importSession(session, { thread: "one" }), 3);
  assert.equal(await memory.importSession(session, { thread: "one" }), 0);
  const found = await memory.search("When is the dentist?");
  assert.ok(found.text.includes("Tuesday") && found.tokens <= 1_000);
  assert.ok(found.passages[0].thread === "one" && found.passages[0].role !== "" && found.passages[0].atMs > 1.7e12);
  assert.deepEqual((await memory.search("What is the capital of Mongolia?")).passages, []);
  await memory.close();
  assert.ok(!readFileSync(store).includes("a1B2a1B2"));
});

test("a recording of an agent is searched", async () => {
  const place = directory();
  const said = (uuid, role, content) => JSON.stringify({ type: role, uuid, sessionId: "s", message: { role, content } });
  const lines = [said("1", "user", "Rename the parser."), said("2", "assistant", [{ type: "text", text: "It is a scanner now." }])];
  writeFileSync(path.join(place, "session.jsonl"), `${lines.join("\n")}\n`);
  writeFileSync(path.join(place, "other.jsonl"), "no recording\n");
  const memory = await Memory.open(path.join(place, "memory.db"));
  assert.equal(await memory.importSession(path.join(place, "session.jsonl")), 2);
  assert.ok((await memory.search("What became of the parser?", { full: true })).text.includes("scanner"));
  await assert.rejects(memory.importSession(path.join(place, "other.jsonl")), InputError);
  await assert.rejects(memory.importSession(path.join(place, "nowhere.jsonl")), { code: "ENOENT" });
  await memory.close();
});

test("what cannot be used is said", async () => {
  const place = directory();
  const foreign = path.join(place, "text.db");
  writeFileSync(foreign, "this is no database, and it has enough bytes to be seen as none");
  await assert.rejects(Memory.open(foreign), StoreError);
  await assert.rejects(Memory.open("postgres://nobody@127.0.0.1:9/nothing"), StoreError);
  const store = path.join(place, "memory.db");
  for (const whose of [{ user: "a", project: "b" }, { user: "" }, { user: 5 }]) {
    await assert.rejects(Memory.open(store, whose), InputError);
  }
  await assert.rejects(Memory.open(5), TypeError);
  const memory = await Memory.open(store);
  await assert.rejects(memory.remember(""), InputError);
  await assert.rejects(memory.remember(5), TypeError);
  await assert.rejects(memory.remember("Ann is here.", { entity: 5 }), TypeError);
  await assert.rejects(memory.search("a", { budget: "many" }), TypeError);
  for (const budget of [-1, 0.5, Number.NaN, 2 ** 40]) await assert.rejects(memory.search("a", { budget }), InputError);
  await assert.rejects(memory.importSession(5, { thread: "one" }), TypeError);
  await assert.rejects(memory.importSession([], { thread: 5 }), TypeError);
  for (const wrong of [[{ content: "a" }], [5], [{ role: "nobody", content: "a" }], [{ role: "user", content: "a", at: "soon" }]]) {
    await assert.rejects(memory.importSession(wrong, { thread: "one" }), InputError);
  }
  await assert.rejects(memory.importSession([{ role: "user", content: "a" }]), /no name/);
  await Promise.all([0, 1, 2, 3, 4, 5, 6, 7].map((n) => memory.remember(`Fact ${n} is true.`, { entity: `thing ${n}` })));
  assert.equal((await memory.facts()).length, 8);
  await memory.close();
  await memory.close();
  await assert.rejects(memory.facts(), ClosedError);
});
