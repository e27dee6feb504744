// A gateway between this program and its model.
"use strict";

const { spawn } = require("node:child_process");
const { accessSync, constants } = require("node:fs");
const path = require("node:path");
const readline = require("node:readline");

const { ClosedError, GatewayError, InputError } = require("./errors.js");

const VARIABLE = "CONTEXTURE_BINARY";
const PROGRAM = process.platform === "win32" ? "contexture.exe" : "contexture";

/** The exit code of the program for arguments that it does not take. */
const BAD_USAGE = 2;
/** The fewest tokens that a request may be limited to. */
const LEAST_BUDGET = 4_000;
/** Milliseconds after which a gateway that says nothing has failed to start. */
const START_MS = 30_000;
/** Milliseconds that a gateway has for its last responses and for the receipt. */
const END_MS = 15_000;
/** Lines of the program's warnings that are kept, to explain a failure. */
const MOST_LINES = 50;

/** Starts a gateway, and resolves when it accepts requests. */
async function gateway(options = {}) {
  const child = new Child(options.binary ?? findBinary(), argumentsOf(options));
  return new Gateway(child, await child.ready());
}

class Gateway {
  #child;
  #ending;
  #receipt;

  constructor(child, addresses) {
    this.#child = child;
    this.openai = addresses.openai;
    this.anthropic = addresses.anthropic;
    this.url = addresses.url;
    this.inspector = addresses.inspector ?? undefined;
    // The addresses contain a secret, which does not belong into logs.
    for (const name of ["openai", "anthropic", "url", "inspector"]) {
      Object.defineProperty(this, name, { enumerable: false, writable: false });
    }
  }

  get receipt() {
    if (this.#receipt === undefined) {
      throw new ClosedError("the receipt is made when the gateway has ended", "read it after `await g.close()`");
    }
    return this.#receipt;
  }

  /** Ends the gateway, and resolves to the receipt. */
  close() {
    this.#ending ??= this.#child.end().then((ended) => (this.#receipt = receiptOf(ended)));
    return this.#ending;
  }

  async [Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]() {
    await this.close();
  }

  /** What a failed test or a log shows: nothing secret. */
  toJSON() {
    return { state: this.#receipt ? "ended" : "running" };
  }
}

/** The program as a child of this process. */
class Child {
  #process;
  #told = [];
  #lines = [];
  #waiting = [];
  #exited;

  constructor(program, args) {
    this.#process = spawn(program, args, { stdio: ["pipe", "pipe", "pipe"] });
    // A program that forgets to close its gateway ends all the same, and the gateway with it.
    for (const part of [this.#process, this.#process.stdin, this.#process.stdout, this.#process.stderr]) {
      part.unref?.();
    }
    this.#process.stdin.on("error", () => {});
    this.#exited = new Promise((resolve) => {
      this.#process.on("error", (error) => resolve({ error }));
      this.#process.on("close", (code, signal) => resolve({ code, signal }));
    });
    readline.createInterface({ input: this.#process.stderr }).on("line", (line) => {
      this.#told.push(line);
      if (this.#told.length > MOST_LINES) this.#told.shift();
    });
    readline.createInterface({ input: this.#process.stdout }).on("line", (line) => this.#take(line));
    this.#exited.then(() => this.#take(undefined));
  }

  async ready() {
    const line = await this.#line(START_MS);
    if (line?.ready === undefined) throw await this.#failed("the gateway did not start");
    return line.ready;
  }

  async end() {
    // From here on the program waits for it.
    this.#process.ref();
    // A byte, because another process may still have the pipe open.
    this.#process.stdin.end("\n");
    const line = await this.#line(END_MS);
    if (line?.ended === undefined) throw await this.#failed("the gateway ended on its own, without a receipt");
    await this.#exited;
    return line.ended;
  }

  #take(line) {
    const next = this.#waiting.shift();
    if (next === undefined) this.#lines.push(line);
    else next(line);
  }

  /** The next line; while it is waited for, the process does not end. */
  async #line(milliseconds) {
    let timer;
    const next = new Promise((resolve) => {
      if (this.#lines.length > 0) resolve(this.#lines.shift());
      else this.#waiting.push(resolve);
      timer = setTimeout(() => resolve(undefined), milliseconds);
    });
    const line = await next;
    clearTimeout(timer);
    try {
      return line === undefined ? undefined : JSON.parse(line);
    } catch {
      return undefined;
    }
  }

  async #failed(otherwise) {
    if (this.#process.exitCode === null) this.#process.kill("SIGKILL");
    const timer = setInterval(() => {}, 1_000);
    const { code, signal, error } = await this.#exited;
    clearInterval(timer);
    if (error !== undefined) return new GatewayError(`start \`${this.#process.spawnfile}\`: ${error.message}`);
    const said = (name) => this.#told.findLast((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
    const [sentence, hint] = [said("error"), said("hint")];
    if (code === BAD_USAGE && sentence !== undefined) return new InputError(sentence, hint);
    return new GatewayError(sentence ?? `${otherwise} (exit code ${code ?? signal})`, hint);
  }
}

function argumentsOf(options) {
  const args = ["serve", "--for-parent"];
  const known = ["budget", "upstream", "store", "observe", "holdout", "baseDir", "inspect", "binary"];
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) throw new TypeError(`there is no option \`${name}\`; there are ${known.join(", ")}`);
  }
  const { budget, upstream, store, observe, holdout, baseDir, inspect } = options;
  if (budget !== undefined) {
    const isWhole = Number.isSafeInteger(checked("budget", budget, "number", "a number of tokens"));
    if (!isWhole || budget < LEAST_BUDGET) {
      throw new InputError(`a budget of ${budget} tokens cannot be used: it is a whole number, at least ${LEAST_BUDGET}`);
    }
    args.push(`--budget=${budget}`);
  }
  if (upstream !== undefined) args.push(`--upstream=${upstream}`);
  if (store === undefined || store === false) args.push("--no-store");
  else if (store !== true) args.push(`--store=${checked("store", store, "string", "a path, an address, or true")}`);
  if (holdout !== undefined) args.push(`--holdout=${checked("holdout", holdout, "number", "a number from 0 to 1")}`);
  if (baseDir !== undefined) args.push(`--base=${checked("baseDir", baseDir, "string", "a path")}`);
  if (checked("observe", observe ?? false, "boolean", "true or false")) args.push("--observe");
  if (checked("inspect", inspect ?? false, "boolean", "true or false")) args.push("--inspect");
  return args;
}

function checked(name, value, kind, expected) {
  if (typeof value !== kind) throw new TypeError(`\`${name}\` is ${expected}, not ${typeof value}`);
  return value;
}

/** The program: what CONTEXTURE_BINARY names, else that of the installed package, else the one on PATH. */
function findBinary() {
  const named = process.env[VARIABLE];
  if (named) {
    if (!isProgram(named)) {
      throw new GatewayError(`\`${named}\`, which ${VARIABLE} names, is no program`, `unset ${VARIABLE}, or correct it`);
    }
    return named;
  }
  try {
    return require.resolve(`contexture-cli-${process.platform}-${process.arch}/bin/${PROGRAM}`);
  } catch {
    // Not installed by npm, or without optional packages.
  }
  const found = (process.env.PATH ?? "")
    .split(path.delimiter)
    .filter((directory) => directory !== "")
    .map((directory) => path.join(directory, PROGRAM))
    .find(isProgram);
  if (found === undefined) {
    throw new GatewayError(
      "the program `contexture` was not found",
      `install the package \`contexture-cli\` whole, or name the program with the variable ${VARIABLE}`,
    );
  }
  return found;
}

function isProgram(file) {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function receiptOf({ receipt: raw, saved_share: savedShare, refused }) {
  return Object.freeze({
    requests: raw.requests,
    conversations: raw.conversations,
    changed: raw.changed,
    refused,
    failed: raw.failed,
    sent: raw.sent,
    came: raw.came,
    cacheRead: raw.cache_read,
    output: raw.output,
    billed: raw.billed,
    passedThrough: raw.passed_through,
    savedShare,
    dollars: raw.dollars ?? undefined,
    folds: raw.folds.map(decisionOf),
    decided: raw.decided,
    passed: raw.passed,
    dependent: raw.dependent,
    raw,
  });
}

function decisionOf(note) {
  return Object.freeze({
    what: note.what,
    reason: note.reason,
    isForced: note.is_forced ?? false,
    beforeTokens: note.before_tokens,
    afterTokens: note.after_tokens,
    cost: note.cost,
    savesPerRequest: note.saves_per_request,
  });
}

exports.gateway = gateway;
exports.Gateway = Gateway;
