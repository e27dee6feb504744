// The example agent goes on after it was killed.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import { provider } from "./provider.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const COUNT = 24;

test("the example goes on after it was killed, within its budget", async () => {
  const place = mkdtempSync(path.join(tmpdir(), "contexture-"));
  for (let n = 0; n < COUNT; n += 1) writeFileSync(path.join(place, `module_${n}.py`), `# module ${n}\n${"value = 1\n".repeat(1_000)}`);
  // What a model that looks at its history would do: the past may be folded, so the number is in the newest call.
  const stand = await provider((body) => {
    const read = [...JSON.stringify(body.messages).matchAll(/module_(\d+)\.py/g)].map(([, number]) => Number(number));
    const next = Math.max(-1, ...read) + 1;
    return next === COUNT ? `all ${next} are read` : [[`call_${next}`, "read_file", { path: `module_${next}.py` }]];
  });
  const env = { ...process.env, OPENAI_API_KEY: "k", OPENAI_BASE_URL: stand.url };
  const program = path.join(here, "built/examples/agent.mjs");
  let kills = 0;
  let said = "";
  while (said === "") {
    const before = stand.bodies.length;
    const child = spawn(process.execPath, [program, "state.json", "Read all modules."], { cwd: place, env });
    const ended = once(child, "close");
    child.stdout.on("data", (text) => (said += text));
    child.stderr.pipe(process.stderr);
    while (child.exitCode === null && stand.bodies.length < before + 7) await sleep(5);
    if (child.exitCode === null) {
      child.kill("SIGKILL");
      kills += 1;
    }
    await ended;
    assert.ok(child.exitCode === 0 || child.signalCode === "SIGKILL");
  }
  stand.close();
  assert.equal(said, `all ${COUNT} are read\n`);
  assert.ok(kills >= 2);
  assert.deepEqual(stand.refusals, []);
  // A call that was lost with a kill is made again, and no other.
  assert.ok(stand.bodies.length <= COUNT + 1 + kills);
  assert.ok(Math.max(...stand.bodies.map(({ text }) => text.length)) / 4 < 36_000);
});

test("the example has 40 lines of code at most", () => {
  const lines = readFileSync(path.join(here, "../examples/agent.mts"), "utf8").split("\n");
  assert.ok(lines.filter((line) => line.trim() !== "" && !line.startsWith("/")).length <= 40);
});
