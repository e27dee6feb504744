// Makes native.d.ts from the types of the Rust code, which its macros have written to a directory when it was compiled:
// node tests/native-types.mjs DIRECTORY PLACE, where @napi-rs/cli is installed in PLACE: its optional packages are for more
// platforms than can be pinned here.
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const [typeDefDir, place] = process.argv.slice(2);
const { generateTypeDef } = createRequire(`${place}/`)("@napi-rs/cli");
const dtsHeader = "/* Made of the types of bindings/typescript/native by bindings/test; not to be edited. */\n";
const { dts } = await generateTypeDef({ typeDefDir, cwd: process.cwd(), dtsHeader });
writeFileSync(fileURLToPath(new URL("../native.d.ts", import.meta.url)), dts);
