// Claude Code in surroundings that change where requests go: node surroundings.mjs CONTEXTURE
// An address that was set before, a proxy, and a settings file that beats the environment.

import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { provide } from "./provider.mjs";

const contexture = process.argv[2];
const agents = process.env.AGENTS_DIR;
let failed = false;

function run(args, env, settings) {
  const work = mkdtempSync(join(tmpdir(), "client-"));
  mkdirSync(join(work, "home/.claude"), { recursive: true });
  if (settings) writeFileSync(join(work, "home/.claude/settings.json"), JSON.stringify(settings));
  const usual = { PATH: `${agents}/node_modules/.bin:${process.env.PATH}`, HOME: join(work, "home"), XDG_STATE_HOME: join(work, "state"), TERM: "dumb", ANTHROPIC_API_KEY: "sk-ant-made-up", IS_SANDBOX: "1" };
  return new Promise((done) => {
    const child = spawn(contexture, args, { cwd: work, env: { ...usual, ...env }, stdio: ["ignore", "pipe", "pipe"], timeout: 120_000 });
    let told = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (told += chunk));
    child.on("close", (code) => done({ code, told }));
  });
}

function check(name, is_so, told) {
  console.log(`${is_so ? "ok    " : "FAILED"} ${name}`);
  if (!is_so) console.log(told.trimEnd().split("\n").map((line) => `       | ${line}`).join("\n"));
  failed ||= !is_so;
}

const ask = ["claude", "-p", "Say ok."];
const provider = await provide({ steps: 0 });
const seen = () => provider.requests.filter((request) => request.isMain).length;

let { code, told } = await run(["run", ...ask], { ANTHROPIC_BASE_URL: provider.url });
check("an address that was set before becomes the upstream", code === 0 && seen() === 1 && /requests? in/.test(told), told);

const asked = [];
const proxy = createServer((_, response) => response.writeHead(502).end());
proxy.on("connect", (request, socket) => { asked.push(request.url); socket.end("HTTP/1.1 502 Bad Gateway\r\n\r\n"); });
await new Promise((done) => proxy.listen(0, "127.0.0.1", done));
({ told } = await run(["run", ...ask], { HTTPS_PROXY: `http://127.0.0.1:${proxy.address().port}`, CLAUDE_CODE_MAX_RETRIES: "0", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1" }));
check("the gateway asks the proxy for the provider", asked.includes("api.anthropic.com:443"), `${asked}\n${told}`);
check("a provider that the proxy does not reach is told", /cannot be reached|502/.test(told), told);
proxy.close();

const settings = { env: { ANTHROPIC_BASE_URL: provider.url } };
const before = seen();
({ code, told } = await run(["run", ...ask], {}, settings));
check("an address in a settings file that beats the environment becomes the upstream", code === 0 && seen() === before + 1 && /requests? in/.test(told), told);
({ code, told } = await run(["doctor", "claude"], {}, settings));
check("a settings file that beats the environment: the doctor sees Claude Code", code === 0 && /reaches the gateway/.test(told), told);
({ code, told } = await run(["run", ...ask], { CLAUDE_CODE_USE_BEDROCK: "1" }));
check("another provider is refused", code === 2 && /CLAUDE_CODE_USE_BEDROCK/.test(told) && /hint:/.test(told), told);
({ code, told } = await run(["doctor", "claude"], {}));
check("the doctor sees Claude Code", code === 0 && /reaches the gateway/.test(told), told);
provider.close();
process.exit(failed ? 1 : 0);
