// The official TypeScript clients, the first and the second line of them, against `contexture mcp`.
import assert from "node:assert";
import { spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as OldStdio } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as OldHttp } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const program = process.argv[2];
const store = join(mkdtempSync(join(tmpdir(), "counterparts-")), "m.db");
const stdio = { command: program, args: ["mcp", "--store", store] };

// Uses every kind of result, and everything that can go wrong.
async function talk(name, client, transport, isNew) {
  await client.connect(transport);
  const { tools } = await client.listTools();
  assert(tools.some((tool) => tool.name === "search_past"));
  const path = `/memories/${name}.md`;
  const heard = [];
  const options = { onprogress: (progress) => heard.push(progress.message) };
  const call = (tool, args, options) =>
    isNew
      ? client.callTool({ name: tool, arguments: args }, options)
      : client.callTool({ name: tool, arguments: args }, undefined, options);
  const made = await call("memory_create", { path, file_text: "Ada likes oolong.\n" }, options);
  assert(!made.isError, JSON.stringify(made));
  // The library loses what is told in the same breath as the result, so a busy machine is asked more than once.
  for (let more = 0; more < 20 && heard.length === 0; more++) await call("memory_view", { path }, options);
  assert(["memory_create", "memory_view"].includes(heard[0]), JSON.stringify(heard));
  assert((await call("memory_view", { path })).content[0].text.includes("oolong"));
  assert((await call("memory_view", { path: "/etc/passwd" })).isError);
  const found = await call("search_past", { text: "Which tea?" });
  assert.equal(found.structuredContent.is_found, false);
  await assert.rejects(call("no_such_tool", {}), /no_such_tool/);
  const ended = new AbortController();
  const cancelled = call("search_past", { text: "x" }, { signal: ended.signal });
  ended.abort();
  await assert.rejects(cancelled);
  assert((await call("memory_view", { path })).content[0].text.includes("oolong"));
  await client.close();
  console.log("ok", name);
}

const about = { name: "counterpart", version: "1.0.0" };
const auto = { versionNegotiation: { mode: "auto" } };
await talk("new-stdio", new Client(about, auto), new StdioClientTransport(stdio), true);
await talk("new-stdio-handshake", new Client(about), new StdioClientTransport(stdio), true);
await talk("old-stdio", new OldClient(about), new OldStdio(stdio), false);

const server = spawn(program, [...stdio.args, "--listen", "127.0.0.1:0"], { stdio: ["ignore", "pipe", "inherit"] });
try {
  const lines = createInterface({ input: server.stdout })[Symbol.asyncIterator]();
  const url = new URL((await lines.next()).value.match(/http:\S+/)[0]);
  const token = (await lines.next()).value.split(" ")[1];
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  await talk("new-http", new Client(about, auto), new StreamableHTTPClientTransport(url, { requestInit }), true);
  await talk("new-http-handshake", new Client(about), new StreamableHTTPClientTransport(url, { requestInit }), true);
  await talk("old-http", new OldClient(about), new OldHttp(url, { requestInit }), false);
  await assert.rejects(new OldClient(about).connect(new OldHttp(url)), /401|token/);
  const post = (headers, body) => fetch(url, { method: "POST", headers: { ...requestInit.headers, ...headers }, body });
  const json = { "content-type": "application/json" };
  const status = async (headers, body) => (await post(headers, body)).status;
  const ping = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" });
  assert.equal(await status(json, ping), 200);
  assert.equal(await status({ ...json, origin: "https://evil.example" }, ping), 403);
  assert.equal(await status({ ...json, authorization: "Bearer x" }, ping), 401);
  assert.equal(await status({ "content-type": "text/plain" }, ping), 415);
  assert.equal(await status(json, "{"), 400);
  assert.equal(await status(json, "[" + ping + "]"), 400);
  assert.equal(await status(json, "x".repeat(5 << 20)), 413);
  assert.equal(await status({ ...json, "mcp-protocol-version": "1999-01-01" }, ping), 400);
  assert.equal(await status({ ...json, "mcp-protocol-version": "2026-07-28" }, ping), 400);
  assert.equal((await fetch(url, { headers: requestInit.headers })).status, 405);
  console.log("ok hostile requests");
} finally {
  server.kill();
}
