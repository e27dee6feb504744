/** An agent that reads files, in 40 lines of code. Killed at any time, it goes on: node agent.mjs STATE.json TASK */
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";

import { Folder, references } from "contexture-cli";
import OpenAI from "openai";

type Messages = OpenAI.ChatCompletionMessageParam[];

const parameters = { type: "object", properties: { path: { type: "string" } }, required: ["path"] };
const tool = { name: "read_file", description: "Returns the text of a file of the project", parameters };

function save(state: string, messages: Messages, folder: Folder): void {
  writeFileSync(`${state}.new`, JSON.stringify({ messages, folder: folder.snapshot() }));
  renameSync(`${state}.new`, state); // Either the old state or the new one is there, whenever it is killed.
}

async function readFile(path: string): Promise<string> {
  const [found] = await references(`#"${path}"`, "."); // Reads nothing outside the project.
  return found?.text ?? found?.problem ?? "there is no such file";
}

const [state = "state.json", task = "Read all modules."] = process.argv.slice(2);
const saved = existsSync(state) ? JSON.parse(readFileSync(state, "utf8")) : undefined;
const messages: Messages = saved?.messages ?? [{ role: "user", content: task }];
const folder = saved ? Folder.restore(saved.folder, { budget: 32_000 }) : new Folder({ budget: 32_000 });
const client = new OpenAI();
while (messages.at(-1)?.role !== "assistant") {
  const folded = await folder.request({ model: "gpt-5", messages, tools: [{ type: "function" as const, function: tool }] });
  const response = await client.chat.completions.create(folded.json());
  folder.usage(response, folded);
  const answer = response.choices[0]!.message;
  messages.push(answer);
  for (const call of answer.tool_calls ?? []) {
    if (call.type !== "function") continue;
    const content = await readFile(JSON.parse(call.function.arguments).path);
    messages.push({ role: "tool", tool_call_id: call.id, content });
  }
  save(state, messages, folder);
}
console.log(messages.at(-1)?.content);
