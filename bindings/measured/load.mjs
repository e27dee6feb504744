// Memory under load in Node: node --expose-gc load.mjs CALLS. Kilobytes resident and in the heap, after each fifth.
import { Folder } from "../typescript/index.js";
import { request } from "../typescript/tests/work.mjs";

const calls = Number(process.argv[2]);
const bodies = [1, 2, 3, 4].map((turns) => request("chat", turns));
const AT_ONCE = 4;

async function use(count) {
  for (let n = 0; n < count / AT_ONCE / bodies.length; n += 1) {
    const folder = new Folder({ budget: 8_000 });
    for (const body of bodies) {
      const folded = await folder.request(body);
      folder.usage({ prompt_tokens: folded.sentTokens, completion_tokens: 5 }, folded);
    }
  }
}

for (let fifth = 1; fifth < 6; fifth += 1) {
  await Promise.all(Array.from({ length: AT_ONCE }, () => use(calls / 5)));
  for (let n = 0; n < 3; n += 1) {
    gc();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const { rss, heapUsed } = process.memoryUsage();
  console.log("node", (fifth * calls) / 5, rss >> 10, heapUsed >> 10);
}
