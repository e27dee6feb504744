// Ordinary work on a real project, as a list of commands: files are read, searched, changed and read again.

import { cpSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

// The sources of the core are the project.
const sources = join(dirname(fileURLToPath(import.meta.url)), "../../../contexture-core/src");

export const project = (work) => cpSync(sources, join(work, "src"), { recursive: true });

const tasks = [
  ["turn.rs", "budget.rs", "TokenBudget"],
  ["log.rs", "history.rs", "ItemLog"],
  ["memory.rs", "model.rs", "ModelRequest"],
  ["tool.rs", "schema.rs", "ToolContext"],
  ["usage.rs", "tokens.rs", "TokenCounter"],
  ["event.rs", "error.rs", "StoreError"],
];

// What is done for one task: look, search, change in three places, look again, and look at what it belongs to.
const steps = ([file, other, word]) => [
  `cat src/${file}`,
  `grep -rn ${word} src | head -30`,
  `cat src/${other}`,
  `sed -i '1s/$/ Reviewed./' src/${file}`,
  `sed -n 1,80p src/${file}`,
  `sed -i '2s/$/ /' src/${file}`,
  `cat src/${file}`,
  `grep -n 'pub fn' src/${file} src/${other}`,
  `sed -i '1s/$/ Reviewed./' src/${other}`,
  `cat src/${other}`,
  `wc -l src/*.rs | tail -1`,
];

// Twice over, as work goes: the second time for what the review of the first found.
export const commands = [...tasks, ...tasks].flatMap(steps);
