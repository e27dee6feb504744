// A folder for each conversation whose requests pass, kept in a directory if one is named.
"use strict";

const { createHash } = require("node:crypto");
const fs = require("node:fs");
const { join } = require("node:path");

const { InputError, StoreError } = require("./errors.js");
const { Folder, checked } = require("./folder.js");

/** Conversations in memory. One that comes back later is read from the store, or folded anew. */
const MOST_FOLDERS = 64;
/** Conversations in a store. The ones that were used least recently are removed. */
const MOST_KEPT = 1_000;
const ROUTE = /\/(messages|chat\/completions|responses)$|:(generateContent|streamGenerateContent)$/;
const FORMATS = { messages: "messages", "chat/completions": "chat", responses: "responses" };
const LISTS = { chat: "messages", messages: "messages", responses: "input", gemini: "contents" };

class Conversation {
  constructor(folder, file) {
    this.folder = folder;
    this.file = file;
  }

  /** Writes what was decided, so that another process goes on with the same bytes. */
  keep() {
    if (this.file === undefined) return;
    const part = `${this.file}.${process.pid}`;
    try {
      fs.writeFileSync(part, this.folder.snapshot());
      fs.renameSync(part, this.file);
    } catch (error) {
      process.emitWarning(`keep what was folded in \`${this.file}\`: ${error.message}`);
    }
  }

  /** Tells the folder what was billed. */
  billed(folded, response) {
    try {
      this.folder.usage(response, folded);
    } catch {
      // A response without usage: nothing is known of its bill.
    }
  }

  /** Reverts what was decided. */
  refused(folded, originalWasAccepted) {
    try {
      this.folder.refused(folded, { originalWasAccepted });
    } catch {
      // So many requests came after it that it is not known any more.
      return;
    }
    this.keep();
  }
}

/** The folders of all conversations that pass. They are told apart by their first messages, and by what follows. */
class Conversations {
  #options;
  #store;
  #held = new Map();

  constructor({ store, ...options }) {
    this.#options = options;
    // Options that cannot be used are said at once.
    new Folder(options).close();
    this.#store = store === undefined ? undefined : opened(checked("store", store, "string", "a path"));
  }

  /** What to send for a request to a path; `undefined` for one that is no part of a conversation. */
  async fold(path, body) {
    const route = ROUTE.exec(path);
    if (route === null) return undefined;
    try {
      const conversation = this.#of(FORMATS[route[1]] ?? "gemini", JSON.parse(Buffer.from(body).toString()));
      const folded = await conversation.folder.request(body);
      if (folded.isChanged) conversation.keep();
      return { conversation, folded };
    } catch (error) {
      // What is no request is for the provider to judge, and what goes wrong here must not end an agent.
      const isNoRequest = [InputError, SyntaxError, TypeError].some((kind) => error instanceof kind);
      if (!isNoRequest) process.emitWarning(`a request is sent as it is: ${error.message}`);
      return undefined;
    }
  }

  #of(format, request) {
    const name = createHash("sha256").update(`${format}\n${beginning(request[LISTS[format]])}`).digest("hex").slice(0, 32);
    const conversation = this.#held.get(name) ?? this.#read(name, format);
    // A map gives the oldest entry first.
    this.#held.delete(name);
    this.#held.set(name, conversation);
    if (this.#held.size > MOST_FOLDERS) this.#held.delete(this.#held.keys().next().value);
    return conversation;
  }

  #read(name, format) {
    const options = { ...this.#options, format };
    const file = this.#store === undefined ? undefined : join(this.#store, `${name}.json`);
    if (file !== undefined && fs.existsSync(file)) {
      try {
        return new Conversation(Folder.restore(fs.readFileSync(file, "utf8"), options), file);
      } catch (error) {
        process.emitWarning(`go on from \`${file}\`: ${error.message}`);
      }
    }
    return new Conversation(new Folder(options), file);
  }
}

function opened(store) {
  try {
    // What was said is in it.
    fs.mkdirSync(store, { mode: 0o700, recursive: true });
    const files = fs.readdirSync(store).filter((name) => name.endsWith(".json"));
    const kept = files.map((name) => join(store, name)).map((file) => ({ file, at: fs.statSync(file).mtimeMs }));
    kept.sort((one, other) => other.at - one.at);
    for (const { file } of kept.slice(MOST_KEPT)) fs.rmSync(file, { force: true });
  } catch (error) {
    throw new StoreError(`open the store \`${store}\`: ${error.message}`, "`store` is a directory");
  }
  return store;
}

/** The text of the first message that is not the program's own. */
function beginning(messages) {
  if (typeof messages === "string") return messages;
  const first = messages.find(({ role }) => role !== "system" && role !== "developer") ?? {};
  const said = first.content ?? first.parts ?? "";
  return typeof said === "string" ? said : said.map(({ text }) => text ?? "").join("\n");
}

exports.Conversations = Conversations;
exports.MOST_FOLDERS = MOST_FOLDERS;
