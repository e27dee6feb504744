// How long a folder takes for a request in Node: border.mjs BODY.json CALLS. Least and median, in microseconds.
import { readFileSync } from "node:fs";

import { Folder } from "../typescript/index.js";

const body = readFileSync(process.argv[2]);
const calls = Number(process.argv[3]);

async function timed(name, use, count = calls) {
  const times = [];
  for (let n = 0; n < count; n += 1) {
    const began = process.hrtime.bigint();
    await use();
    times.push(Number(process.hrtime.bigint() - began) / 1e3);
  }
  times.sort((a, b) => a - b);
  console.log("node", name, times[0].toFixed(1), times[count >> 1].toFixed(1));
}

const [one, two, three] = [0, 1, 2].map(() => new Folder({ budget: 64_000 }));
await timed("bytes", () => one.requestSync(body));
await timed("promises", () => two.request(body));
const given = JSON.parse(body);
await timed("objects", () => three.requestSync(given).json());

// The parts of it that are no work of the folder.
const { body: changed } = one.requestSync(body);
one.close();
const entered = () => {
  try {
    one.requestSync(body);
  } catch {
    // It is closed.
  }
};
const small = Buffer.from('{"model":"gpt-5","messages":[{"role":"user","content":"hello"}]}');
await timed("entered and left", entered, 300);
await timed("body copied", () => Buffer.from(body), 300);
await timed("little at once", () => three.requestSync(small), 300);
await timed("little as a promise", () => three.request(small), 300);
await timed("object written", () => Buffer.from(JSON.stringify(given)), 300);
await timed("object read", () => JSON.parse(Buffer.from(changed).toString()), 300);
