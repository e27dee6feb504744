// Memory in process: facts, and the search over past conversations.
"use strict";

const { readFile } = require("node:fs/promises");
const path = require("node:path");

const { InputError } = require("./errors.js");
const { checked } = require("./folder.js");
const { promised } = require("./library.js");

class Memory {
  #native;

  constructor(native) {
    this.#native = native;
  }

  static async open(store, { user, project } = {}) {
    checked("store", store, "string", "a path, or an address of PostgreSQL");
    if (user !== undefined && project !== undefined) {
      throw new InputError("a memory belongs to a user or to a project, not to both");
    }
    const owner = project ?? user ?? "me";
    if (typeof owner !== "string" || owner === "") {
      throw new InputError("the name of a user or project is a text that is not empty");
    }
    return new Memory(await promised(({ openMemory }) => openMemory(store, owner, project !== undefined)));
  }

  async importSession(session, { thread } = {}) {
    if (typeof session === "string" || session instanceof URL) {
      const bytes = await readFile(session);
      const name = path.parse(session instanceof URL ? session.pathname : session).name;
      return promised(() => this.#native.importRecording(thread ?? name, bytes));
    }
    if (thread === undefined) throw new InputError("the conversation has no name", "name it with `thread`");
    if (typeof session?.[Symbol.iterator] !== "function") throw new TypeError("a session is a path or a list of messages");
    const messages = Array.from(session, said).filter(({ text }) => text !== "");
    return promised(() => this.#native.importMessages(thread, JSON.stringify(messages)));
  }

  async search(text, { budget = 1_000, full = false } = {}) {
    checked("text", text, "string", "a text");
    checked("budget", budget, "number", "a number of tokens");
    if (!(Number.isInteger(budget) && budget >= 0 && budget < 2 ** 32)) {
      throw new InputError(`a budget of ${budget} tokens cannot be used: it is a whole number that is not negative`);
    }
    return promised(() => this.#native.search(text, budget, full === true));
  }

  async remember(text, { entity, attribute, value } = {}) {
    checked("text", text, "string", "a text");
    return promised(() => this.#native.remember({ text, entity, attribute, value }));
  }

  async facts({ withPast = false } = {}) {
    return promised(() => this.#native.facts(withPast === true));
  }

  async forget(id) {
    checked("id", id, "string", "the name of a fact");
    return promised(() => this.#native.forget(id));
  }

  async close() {
    return promised(() => this.#native.close());
  }

  async [Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]() {
    await this.close();
  }
}

/** A message as the library takes it: what people said, without calls and their outputs. */
function said(message) {
  if (typeof message?.role !== "string") throw new InputError("a message is an object with `role` and `content`");
  const { role, id, at } = message;
  const content = message.content ?? message.text ?? "";
  const texts = Array.isArray(content) ? content.map((part) => part?.text).filter((text) => text !== undefined) : [content];
  const text = role === "tool" ? "" : texts.join("\n");
  return { role, text, id: id === undefined ? null : `${id}`, at: at instanceof Date ? at.toISOString() : (at ?? null) };
}

exports.Memory = Memory;
