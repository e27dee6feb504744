// How long a folder takes for a request in Node: border.mjs BODY.json CALLS. Least and median, in microseconds.
import { readFileSync } from "node:fs";

import { Folder } from "../typescript/index.js";

const body = readFileSync(process.argv[2]);
const calls = Number(process.argv[3]);

async function timed(name, use) {
  const times = [];
  for (let n = 0; n < calls; n += 1) {
    const began = process.hrtime.bigint();
    await use();
    times.push(Number(process.hrtime.bigint() - began) / 1e3);
  }
  times.sort((a, b) => a - b);
  console.log("node", name, Math.round(times[0]), Math.round(times[calls >> 1]));
}

const [one, two, three] = [0, 1, 2].map(() => new Folder({ budget: 64_000 }));
await timed("bytes", () => one.requestSync(body));
await timed("promises", () => two.request(body));
const given = JSON.parse(body);
await timed("objects", () => three.requestSync(given).json());
