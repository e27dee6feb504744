// Makes native.d.ts from the types of the Rust code, which its macros have written to a directory when it was compiled:
// node tests/native-types.mjs DIRECTORY
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { generateTypeDef } from "@napi-rs/cli";

const [typeDefDir] = process.argv.slice(2);
const dtsHeader = "/* Made of the types of bindings/typescript/native by bindings/test; not to be edited. */\n";
const { dts } = await generateTypeDef({ typeDefDir, cwd: process.cwd(), dtsHeader });
writeFileSync(fileURLToPath(new URL("../native.d.ts", import.meta.url)), dts);
