#!/usr/bin/env node
// Starts the binary of this platform, as if it had been started itself: same terminal, signals and exit code.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");

const PACKAGES = "@PACKAGES@";
const SOURCE =
  "with Rust and a C compiler, `cargo install --locked --path crates/contexture-cli` in a clone of its repository builds it";

function fail(sentence, hint) {
  process.stderr.write(`error: ${sentence}\nhint: ${hint}\n`);
  process.exit(1);
}

/** Whether the C library is glibc; only Linux has others. */
function hasGlibc() {
  if (process.platform !== "linux") return true;
  return process.report === undefined || Boolean(process.report.getReport().header.glibcVersionRuntime);
}

function binary() {
  const here = `${process.platform}-${process.arch}`;
  const name = PACKAGES[here];
  if (name === undefined) {
    fail(`@PROGRAM@ has no package for ${here}; there are packages for ${Object.keys(PACKAGES).join(", ")}`, SOURCE);
  }
  try {
    return require.resolve(`${name}/bin/@PROGRAM@`);
  } catch {
    if (!hasGlibc()) fail(`@PROGRAM@ has no package for ${here} with a C library other than glibc`, SOURCE);
    return fail(
      `the package \`${name}\`, which holds the binary for ${here}, is not installed`,
      "install again without `--omit=optional` or `--no-optional`, on the machine where it is to run",
    );
  }
}

const path = binary();
const child = spawn(path, process.argv.slice(2), { stdio: "inherit" });
// The terminal sends Ctrl-C to the binary as well; it decides what it means.
process.on("SIGINT", () => {
  if (!process.stdin.isTTY) child.kill("SIGINT");
});
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => fail(`start \`${path}\`: ${error.message}`, SOURCE));
child.on("exit", (code, signal) => process.exit(code === null ? 128 + constants.signals[signal] : code));
