// Runs clients with and without the gateway and holds the two against each other: node run.mjs CONTEXTURE CLIENT…
// What is wanted of them is in README.md.

import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { clients } from "./clients.mjs";
import { commands, project } from "./ordinary.mjs";
import { provide } from "./provider.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const [contexture, ...names] = process.argv.slice(2);
const agents = process.env.AGENTS_DIR;
const faults = (process.env.FAULTS ?? "").split(/[ ,]+/).filter(Boolean);
const seconds = Number(process.env.SECONDS_EACH ?? 240);

// A place for one run, with the files of the task.
function place(steps, files = {}) {
  const work = mkdtempSync(join(tmpdir(), "client-"));
  mkdirSync(join(work, "home"));
  for (let part = 0; part < steps; part += 1) {
    const lines = Array.from({ length: 160 }, (_, n) => `line ${n + 1} of the text that belongs to part ${part} of the work`);
    writeFileSync(join(work, `part_${part}.txt`), `step-${part}-of-the-task\n${lines.join("\n")}\n`);
  }
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(work, name)), { recursive: true });
    writeFileSync(join(work, name), text);
  }
  return work;
}

function start(command, args, options) {
  return new Promise((done) => {
    // A group of its own, so that whatever it started ends with it.
    const child = spawn(command, args, { ...options, detached: true, stdio: ["ignore", "pipe", "pipe"] });
    const [out, err] = [[], []];
    child.stdout.on("data", (chunk) => out.push(chunk));
    child.stderr.on("data", (chunk) => err.push(chunk));
    const end = () => { try { process.kill(-child.pid, "SIGKILL"); } catch { /* it ended */ } };
    const timer = setTimeout(end, seconds * 1000);
    const text = (chunks) => Buffer.concat(chunks).toString();
    child.on("error", (error) => done({ code: error.message, out: "", err: "" }));
    child.on("close", (code, signal) => { clearTimeout(timer); end(); done({ code: code ?? signal, out: text(out), err: text(err) }); });
  });
}

async function attempt(client, isBehind, fault) {
  const isOrdinary = Boolean(process.env.ORDINARY);
  const steps = isOrdinary ? commands.length : fault ? 4 : Number(process.env.STEPS ?? 14);
  const provider = await provide({ steps, fault, end: client.end, commands: isOrdinary ? commands : undefined });
  const straight = isBehind ? {} : client.straight(provider.url);
  const work = place(isOrdinary ? 0 : steps, { ...client.files, ...straight.files });
  if (isOrdinary) project(work);
  const venv = client.pip ? join(agents, `venv-${client.pip[0]}`, "bin") : null;
  const path = [venv, join(agents, "bin"), join(agents, "node_modules/.bin"), process.env.PATH].filter(Boolean).join(":");
  const env = { PATH: path, HOME: join(work, "home"), XDG_STATE_HOME: join(work, "state"), TERM: "dumb", LANG: "C.UTF-8", TMPDIR: tmpdir(), AGENTS_DIR: agents, ...client.env, ...client.own?.(provider.url), ...straight.env };
  const set = Object.entries(client.set ?? {}).flatMap(([name, value]) => ["--set", `${name}=${value}`]);
  // An address that is set already becomes the upstream.
  const upstream = client.own ? [] : ["--upstream", `${provider.url}/v1`];
  const gateway = ["run", "--details", "--budget", process.env.BUDGET ?? String(client.budget), ...set, ...upstream, client.run ?? client.command, ...client.args];
  const ended = isBehind
    ? await start(contexture, gateway, { cwd: work, env })
    : await start(client.command, [...(straight.before ?? []), ...client.args], { cwd: work, env });
  provider.close();
  if (!process.env.KEEP) rmSync(work, { recursive: true, force: true });
  return { ...ended, requests: provider.requests, steps };
}

const mains = (tried) => tried.requests.filter((request) => request.isMain);
const refused = (tried) => tried.requests.filter(({ took }) => !took).length;
const bill = (tried) => `${Math.round(tried.requests.reduce((sum, { billed }) => sum + (billed ?? 0), 0))} (${tried.requests.length} requests, ${refused(tried)} refused)`;
const folds = (tried) => (tried.err.match(/^  folded {5}\d/gm) ?? []).length;

// How a run ended, as a person would see it.
function ending(tried) {
  const main = mains(tried);
  const said = /The task is done\./.test(tried.out + tried.err) ? "the task was done" : "the task was not done";
  const repeated = main.filter((request, at) => at > 0 && request.done === main[at - 1].done).length;
  return `${said}, exit ${tried.code}, ${main.at(-1)?.done ?? 0} of ${tried.steps} steps, ${repeated} repeated`;
}

function wrongs(client, straight, behind, fault) {
  const wrong = [];
  if (mains(behind).length === 0) wrong.push("no request came through the gateway");
  if (ending(straight) !== ending(behind)) wrong.push(`without the gateway: ${ending(straight)}; with it: ${ending(behind)}`);
  for (const [name, value] of Object.entries(client.headers ?? {})) {
    if (mains(behind).some((request) => request.headers[name] !== value)) wrong.push(`the header ${name} came otherwise than it was sent`);
  }
  const usual = new Set(straight.requests.flatMap((request) => request.faults));
  for (const request of behind.requests) wrong.push(...request.faults.filter((found) => !usual.has(found)));
  if (fault) return wrong;
  if (!ending(straight).startsWith("the task was done")) wrong.push(`even without the gateway ${ending(straight)}`);
  const moved = (tried) => mains(tried).filter((request) => request.kept < request.before).length;
  if (folds(behind) === 0) wrong.push("nothing was folded");
  if (moved(behind) > folds(behind) + moved(straight)) wrong.push(`the prefix moved ${moved(behind)} times with ${folds(behind)} folds`);
  return wrong;
}

let failed = false;
for (const client of clients(here).filter(({ name }) => names.some((wanted) => name === wanted || name.startsWith(`${wanted}-`)))) {
  for (const fault of process.env.ONLY_FAULTS ? faults : [null, ...faults]) {
    const [straight, behind] = [await attempt(client, false, fault), await attempt(client, true, fault)];
    const wrong = wrongs(client, straight, behind, fault);
    const kinds = [...new Set(mains(behind).map((request) => request.kind + (request.streams ? ", streaming" : "")))].join("; ");
    const sizes = mains(behind).map((request) => Math.round(request.bytes / 1000)).join(" ");
    const told = fault ? ending(behind) : `${folds(behind)} folds, kB sent ${sizes}`;
    console.log(`${wrong.length ? "FAILED" : "ok    "} ${client.name}${fault ? ` ${fault}` : ""} (${kinds}): ${behind.requests.length} requests, ${told}`);
    for (const found of new Set(wrong)) console.log(`       ${found}`);
    if (process.env.ORDINARY) console.log(behind.err);
    if (process.env.ORDINARY) console.log(`       billed, in tokens at the price of input: ${bill(straight)} without the gateway, ${bill(behind)} with it`);
    if (wrong.length && process.env.VERBOSE) {
      const tail = (text) => text.trimEnd().split("\n").slice(-25).map((line) => `       | ${line.slice(0, 200)}`).join("\n");
      console.log(["straight", tail(straight.out), tail(straight.err), "behind", tail(behind.out), tail(behind.err)].join("\n"));
    }
    failed ||= wrong.length > 0;
  }
}
process.exit(failed ? 1 : 0);
