// The fold in process: what to send for the requests of one conversation; and tokens and files.
"use strict";

const { InputError } = require("./errors.js");
const { call, promised } = require("./library.js");

const LISTS = { chat: "messages", messages: "messages", responses: "input", gemini: "contents" };
const OPTIONS = ["budget", "prices", "policy", "baseDir", "format"];
const PRICES = { writeHour: "write_hour" };

class Folded {
  #given;
  #plain;
  #body;
  #parsed;

  constructor(given, plain, { changed, report }) {
    this.#given = given;
    this.#plain = plain;
    this.#body = changed;
    Object.assign(this, report);
  }

  get body() {
    return this.#body ?? this.#plain;
  }

  json() {
    if (!this.isChanged && isPlain(this.#given)) return this.#given;
    this.#parsed ??= JSON.parse(Buffer.from(this.body).toString());
    return this.#parsed;
  }

  get messages() {
    return this.json()[LISTS[this.format]];
  }
}

class Folder {
  #native;

  constructor(options = {}, snapshot = undefined) {
    const written = optionsOf(options);
    this.#native = call(({ NativeFolder }) => new NativeFolder(written, snapshot));
  }

  static restore(snapshot, options = {}) {
    return new Folder(options, checked("snapshot", snapshot, "string", "a string"));
  }

  async request(body) {
    const plain = bytesOf(body, "a request");
    return new Folded(body, plain, await promised(() => this.#native.request(plain)));
  }

  requestSync(body) {
    const plain = bytesOf(body, "a request");
    return new Folded(body, plain, call(() => this.#native.requestSync(plain)));
  }

  usage(reported, of) {
    const plain = bytesOf(reported, "usage");
    return call(() => this.#native.usage(numberOf(of), plain));
  }

  refused(of, { originalWasAccepted = false } = {}) {
    call(() => this.#native.refused(numberOf(of), originalWasAccepted === true));
  }

  snapshot() {
    return call(() => this.#native.snapshot());
  }

  close() {
    this.#native.close();
  }

  [Symbol.dispose ?? Symbol.for("Symbol.dispose")]() {
    this.close();
  }
}

async function references(text, baseDir) {
  if (typeof text !== "string") throw new TypeError(`\`text\` is a string, not ${kindOf(text)}`);
  if (baseDir !== undefined) checked("baseDir", baseDir, "string", "a path");
  return promised(({ findReferences }) => findReferences(text, baseDir));
}

function countTokens(text, counter = "o200k") {
  if (typeof text !== "string") throw new TypeError(`\`text\` is a string, not ${kindOf(text)}`);
  return call((library) => library.countTokens(text, String(counter)));
}

function optionsOf(options) {
  if (!isPlain(options)) throw new TypeError(`options are an object, not ${kindOf(options)}`);
  for (const name of Object.keys(options)) {
    if (!OPTIONS.includes(name)) throw new TypeError(`there is no option \`${name}\`; there are ${OPTIONS.join(", ")}`);
  }
  const { budget, prices, policy, baseDir, format } = options;
  if (budget !== undefined) checked("budget", budget, "number", "a number of tokens");
  if (budget !== undefined && !(Number.isSafeInteger(budget) && budget >= 0)) {
    throw new InputError(`a budget of ${budget} tokens cannot be used: it is a whole number, at least 4000`);
  }
  if (baseDir !== undefined) checked("baseDir", baseDir, "string", "a path");
  if (policy !== undefined && !isPlain(policy)) throw new TypeError(`\`policy\` is an object, not ${kindOf(policy)}`);
  const models = prices === undefined ? [] : Array.isArray(prices) ? prices : [prices];
  const renamed = (entry) => {
    if (!isPlain(entry)) throw new TypeError(`\`prices\` are objects, not ${kindOf(entry)}`);
    // JSON has no such numbers, and would leave them out.
    const wrong = Object.keys(entry).find((name) => typeof entry[name] === "number" && !Number.isFinite(entry[name]));
    if (wrong !== undefined) throw new InputError(`the price \`${wrong}\` is a number that is not negative`);
    return Object.entries(entry).map(([name, value]) => [PRICES[name] ?? name, value]);
  };
  return JSON.stringify({
    budget: budget ?? null,
    models: models.map((entry) => ({ name: "", ...Object.fromEntries(renamed(entry)) })),
    pins: policy ?? {},
    base_dir: baseDir ?? null,
    format: format ?? null,
  });
}

/** The bytes of a request or a response: of bytes, of a text, or of an object as the providers' own clients write it. */
function bytesOf(given, what) {
  if (given instanceof Uint8Array) return given;
  if (given instanceof ArrayBuffer) return new Uint8Array(given);
  if (typeof given === "string") return Buffer.from(given);
  if (!isPlain(given)) throw new TypeError(`${what} is bytes, a string or an object, not ${kindOf(given)}`);
  let text;
  try {
    text = JSON.stringify(given);
  } catch (error) {
    throw new InputError(`${what} cannot be written as JSON: ${error.message}`);
  }
  if (text === undefined) throw new InputError(`${what} cannot be written as JSON`);
  return Buffer.from(text);
}

function numberOf(folded) {
  if (folded === undefined) return undefined;
  if (!(folded instanceof Folded)) throw new TypeError(`\`of\` is what \`request\` returned, not ${kindOf(folded)}`);
  return folded.number;
}

function isPlain(value) {
  const isObject = typeof value === "object" && value !== null;
  return isObject && !Array.isArray(value) && !ArrayBuffer.isView(value) && !(value instanceof ArrayBuffer);
}

function kindOf(value) {
  return value === null ? "null" : Array.isArray(value) ? "an array" : typeof value;
}

function checked(name, value, kind, expected) {
  if (typeof value !== kind) throw new TypeError(`\`${name}\` is ${expected}, not ${kindOf(value)}`);
  return value;
}

exports.Folded = Folded;
exports.Folder = Folder;
exports.countTokens = countTokens;
exports.references = references;
exports.checked = checked;
