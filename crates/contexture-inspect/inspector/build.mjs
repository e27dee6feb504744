// Bundles the page into dist/, which is committed: building the program needs no Node.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";

const common = { bundle: true, minify: true, charset: "ascii", legalComments: "none", logLevel: "warning", target: "es2022" };
await build({ ...common, entryPoints: ["src/main.tsx"], outfile: "dist/app.js", format: "iife", jsx: "automatic", jsxImportSource: "preact" });
await build({ ...common, entryPoints: ["src/app.css"], outfile: "dist/app.css" });
for (const file of ["index.html", "icon.svg"]) writeFileSync(`dist/${file}`, readFileSync(`src/${file}`));
// An export has script and style inside, and allows them by these hashes.
const hash = (file) => "sha256-" + createHash("sha256").update(readFileSync(file)).digest("base64");
writeFileSync("dist/hashes.txt", `${hash("dist/app.js")}\n${hash("dist/app.css")}\n`);
