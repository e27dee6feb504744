// Writes the blocks of docs/typescript.md and of the packages' README as programs, which are compiled and run by the tests.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const pages = ["docs/typescript.md", "packaging/description.md"].map((page) => new URL(`../../../${page}`, import.meta.url));
const text = pages.map((page) => readFileSync(page, "utf8")).join("");
const out = fileURLToPath(new URL("built/docs/", import.meta.url));
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
[...text.matchAll(/```ts\n(.*?)```/gs)].forEach(([, block], number) => writeFileSync(`${out}block-${number}.mts`, block));
