// Writes the blocks of docs/typescript.md as programs, which are compiled and run by the tests.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const text = readFileSync(new URL("../../../docs/typescript.md", import.meta.url), "utf8");
const out = fileURLToPath(new URL("built/docs/", import.meta.url));
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
[...text.matchAll(/```ts\n(.*?)```/gs)].forEach(([, block], number) => writeFileSync(`${out}block-${number}.mts`, block));
