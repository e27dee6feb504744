// Says whether an agent ended well behind the gateway: node judge.mjs AGENT DIRECTORY STEPS

import { existsSync, readFileSync } from "node:fs";

const [agent, work, steps] = [process.argv[2], process.argv[3], Number(process.argv[4])];
const read = (name) => (existsSync(`${work}/${name}`) ? readFileSync(`${work}/${name}`, "utf8") : "");
const requests = read("requests.jsonl").split("\n").filter(Boolean).map((line) => JSON.parse(line));
const main = requests.filter((request) => request.isMain);
const receipt = read("err");
const moved = main.filter((request) => request.kept < request.before).length;
const folds = (receipt.match(/^  folded {5}\d/gm) ?? []).length;
const wrong = [];
if (read("code").trim() !== "0") wrong.push(`it ended with ${read("code").trim() || "a time-out"}`);
if (!read("out").includes("The task is done.")) wrong.push("the task was not done");
if (main.at(-1)?.done !== steps) wrong.push(`${main.at(-1)?.done} of ${steps} steps were done`);
for (const request of requests) wrong.push(...request.faults);
if (folds === 0) wrong.push("nothing was folded");
if (moved > folds) wrong.push(`the prefix moved ${moved} times with ${folds} folds`);
const sizes = main.map((request) => Math.round(request.bytes / 1000));
console.log(`${agent}: ${requests.length} requests (${requests[0]?.kind}), ${folds} folds, prefix moved ${moved} times, kB sent ${sizes.join(" ")}`);
for (const fault of wrong) console.log(`  ${fault}`);
if (wrong.length > 0) console.log(receipt.split("\n").map((line) => `  | ${line}`).join("\n"));
console.log(wrong.length === 0 ? "  ok" : "  failed");
process.exit(wrong.length === 0 ? 0 : 1);
