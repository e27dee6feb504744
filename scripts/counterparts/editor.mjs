// The Agent Client Protocol's own library as an editor, against `contexture chat --acp` with a scripted model.
import assert from "node:assert";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync, existsSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const program = process.argv[2];
const directory = mkdtempSync(join(tmpdir(), "editor-"));
writeFileSync(join(directory, "a.txt"), "one\n");

// Each turn is a list of calls, and then a text.
const turns = {
  "change it": [
    ["read_file", { path: "a.txt" }],
    ["plan__propose", { goal: "Two", steps: [{ text: "Change it" }, { text: "Check it" }] }],
    ["plan__approve", {}],
    ["edit_file", { path: "a.txt", old_string: "one", new_string: "two" }],
    ["execute_bash", { command: "echo checked; exit 4" }],
    ["execute_bash", { command: "touch never" }],
    "All done.",
  ],
  "wait": [["execute_bash", { command: "touch waiting; sleep 600" }], "never"],
  "go on": ["Going on."],
  "open files": [
    ["read_file", { path: "a.txt" }],
    ["edit_file", { path: "a.txt", old_string: "not saved", new_string: "changed" }],
    ["write_file", { path: "made.txt", content: "new\n" }],
    ["write_file", { path: "locked.txt", content: "new\n" }],
    "Changed.",
  ],
};
const model = createServer((request, response) => {
  let body = "";
  request.on("data", (data) => (body += data));
  request.on("end", () => {
    const { messages } = JSON.parse(body);
    const at = messages.findLastIndex((one) => one.role === "user" && Object.keys(turns).some((key) => JSON.stringify(one.content).includes(key)));
    const key = Object.keys(turns).find((key) => JSON.stringify(messages[at].content).includes(key));
    const step = turns[key][messages.slice(at).filter((one) => one.role === "tool").length];
    const call = Array.isArray(step) && [{ index: 0, id: `c${messages.length}`, type: "function", function: { name: step[0], arguments: JSON.stringify(step[1]) } }];
    const delta = call ? { tool_calls: call } : { content: step };
    const usage = { prompt_tokens: 1000, completion_tokens: 10 };
    const chunk = { choices: [{ index: 0, delta, finish_reason: call ? "tool_calls" : "stop" }], usage };
    response.setHeader("content-type", "text/event-stream");
    response.end(`data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`);
  });
});
await new Promise((done) => model.listen(0, "127.0.0.1", done));
const url = `http://127.0.0.1:${model.address().port}/v1`;

const agent = spawn(program, ["chat", "--acp", "--url", url, "--model", "m", "--store", join(directory, "c.db")], {
  stdio: ["pipe", "pipe", "inherit"],
  env: { ...process.env, XDG_CONFIG_HOME: directory, HOME: directory },
});
const updates = [];
const asked = [];
// What the editor has open and has not saved, and what it was told to write.
const open = {};
const written = {};
const app = acp
  .client({ name: "counterpart" })
  .onNotification(acp.methods.client.session.update, ({ params }) => updates.push(params.update))
  .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
    asked.push(params.toolCall);
    const wanted = params.toolCall.title.includes("never") ? "reject_once" : "allow_once";
    const optionId = params.options.find((option) => option.kind === wanted).optionId;
    return { outcome: { outcome: "selected", optionId } };
  })
  .onRequest(acp.methods.client.fs.readTextFile, ({ params }) => {
    const content = open[params.path] ?? (existsSync(params.path) ? readFileSync(params.path, "utf8") : undefined);
    if (content === undefined) throw acp.RequestError.resourceNotFound(params.path);
    return { content };
  })
  .onRequest(acp.methods.client.fs.writeTextFile, ({ params }) => {
    if (params.path.endsWith("locked.txt")) throw acp.RequestError.invalidParams(undefined, "it is locked");
    written[params.path] = open[params.path] = params.content;
    return {};
  });
const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
const text = (text) => [{ type: "text", text }];
const kinds = (kind) => updates.filter((update) => update.sessionUpdate === kind);
const said = (kind) => kinds(kind).map((update) => update.content.text).join("");

await app.connectWith(stream, async (ctx) => {
  const request = (method, params) => ctx.request(method, params);
  const hello = await request(acp.methods.agent.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} });
  assert.equal(hello.protocolVersion, 1);
  assert(hello.agentCapabilities.loadSession);
  const { sessionId } = await request(acp.methods.agent.session.new, { cwd: directory, mcpServers: [] });

  const done = await request(acp.methods.agent.session.prompt, { sessionId, prompt: text("change it") });
  assert.equal(done.stopReason, "end_turn");
  assert.equal(said("agent_message_chunk"), "All done.");
  assert.equal(readFileSync(join(directory, "a.txt"), "utf8"), "two\n");
  assert(!existsSync(join(directory, "never")), "it was refused");
  assert.deepEqual(asked.map((call) => call.kind), ["edit", "execute", "execute"]);
  assert.equal(asked[0].content[0].type, "diff");
  assert.equal(asked[0].content[0].oldText, "one\n");
  assert.equal(asked[0].content[0].path, join(directory, "a.txt"));
  assert(kinds("tool_call").some((call) => call.kind === "read" && call.locations[0].path === join(directory, "a.txt")));
  const ended = kinds("tool_call_update").filter((update) => update.status);
  assert(ended.some((update) => update.status === "completed"));
  assert(ended.some((update) => update.status === "failed" && JSON.stringify(update.content).includes("exit code 4")));
  assert(ended.some((update) => update.status === "failed" && JSON.stringify(update.content).includes("said no")));
  const plan = kinds("plan").at(-1).entries;
  assert.deepEqual(plan.map((entry) => [entry.content, entry.status]), [["Change it", "in_progress"], ["Check it", "pending"]]);
  const usage = kinds("usage_update").at(-1);
  assert(usage.used > 0 && usage.size >= usage.used);
  console.log("ok prompt, calls, permission, plan, usage");

  const waiting = request(acp.methods.agent.session.prompt, { sessionId, prompt: text("wait") });
  while (!existsSync(join(directory, "waiting"))) await new Promise((done) => setTimeout(done, 20));
  await assert.rejects(request(acp.methods.agent.session.prompt, { sessionId: "none", prompt: text("x") }));
  await ctx.notify(acp.methods.agent.session.cancel, { sessionId });
  assert.equal((await waiting).stopReason, "cancelled");
  console.log("ok cancel");

  updates.length = 0;
  await request(acp.methods.agent.session.load, { sessionId, cwd: directory, mcpServers: [] });
  assert(said("user_message_chunk").includes("change it") && said("agent_message_chunk").includes("All done."));
  assert(kinds("tool_call").length >= 5 && kinds("plan").length === 1);
  updates.length = 0;
  const more = await request(acp.methods.agent.session.prompt, { sessionId, prompt: text("go on") });
  assert.equal(more.stopReason, "end_turn");
  assert.equal(said("agent_message_chunk"), "Going on.");
  console.log("ok load");

  assert.deepEqual(written, {}, "an editor that does not say that it writes files is not asked to");
  const fs = { readTextFile: true, writeTextFile: true };
  await request(acp.methods.agent.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: { fs } });
  open[join(directory, "a.txt")] = "not saved\n";
  const files = await request(acp.methods.agent.session.new, { cwd: directory, mcpServers: [] });
  updates.length = 0;
  await request(acp.methods.agent.session.prompt, { sessionId: files.sessionId, prompt: text("open files") });
  assert(JSON.stringify(kinds("tool_call_update")).includes("it is locked"), "the model is told why");
  assert.deepEqual(written, { [join(directory, "a.txt")]: "changed\n", [join(directory, "made.txt")]: "new\n" });
  assert.equal(readFileSync(join(directory, "a.txt"), "utf8"), "two\n", "saving is the editor's");
  assert(!existsSync(join(directory, "made.txt")) && !existsSync(join(directory, "locked.txt")));
  console.log("ok files that are not saved");

  await assert.rejects(request(acp.methods.agent.session.new, { cwd: "relative", mcpServers: [] }));
  await assert.rejects(request(acp.methods.agent.session.new, { cwd: "/nowhere/at/all", mcpServers: [] }));
  await assert.rejects(request(acp.methods.agent.session.load, { sessionId: "zzz", cwd: directory, mcpServers: [] }));
  await assert.rejects(request(acp.methods.agent.session.prompt, { sessionId, prompt: [] }));
  console.log("ok hostile requests");
});
agent.stdin.end();
model.close();
model.closeAllConnections();
