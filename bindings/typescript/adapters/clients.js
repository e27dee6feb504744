// The clients of OpenAI and Anthropic: a `fetch` that folds what they send.
"use strict";

const { InputError } = require("../errors.js");
const { Folder } = require("../folder.js");

/** Where requests go that have a conversation in them. */
const PATHS = /\/(messages|chat\/completions|responses)$/;
/** What a provider says of a request that it does not understand, or that is too long. */
const REFUSALS = [400, 413, 422];

function foldingFetch(options = {}, { fetch = globalThis.fetch } = {}) {
  const folder = options instanceof Folder ? options : new Folder(options);
  return Object.assign(async (address, init = {}) => {
    const folded = await foldedOf(folder, address, init);
    if (folded === undefined) return fetch(address, init);
    const response = await fetch(address, { ...init, headers: headersOf(init, folded), body: folded.body });
    if (folded.isChanged && REFUSALS.includes(response.status)) {
      await response.body?.cancel();
      const again = await fetch(address, init);
      folder.refused(folded, { originalWasAccepted: again.ok });
      return again;
    }
    return response.ok && response.body !== null ? watched(folder, folded, response) : response;
  }, { folder });
}

/** What to send for a request; nothing for one that is no part of a conversation. */
async function foldedOf(folder, address, { method, body }) {
  const { pathname } = new URL(address instanceof Request ? address.url : address);
  const isText = typeof body === "string" || body instanceof Uint8Array;
  if (method?.toUpperCase() !== "POST" || !isText || !PATHS.test(pathname)) return undefined;
  try {
    return await folder.request(body);
  } catch (error) {
    // What is no request is for the provider to judge.
    if (error instanceof InputError) return undefined;
    throw error;
  }
}

function headersOf({ headers }, folded) {
  const changed = new Headers(headers);
  if (changed.has("content-length")) changed.set("content-length", String(folded.body.length));
  return changed;
}

/** The response, whose usage is reported when it was read, or is cancelled: some clients do not read to the end. */
function watched(folder, folded, response) {
  const [reader, chunks] = [response.body.getReader(), []];
  const report = () => {
    try {
      folder.usage(Buffer.concat(chunks), folded);
    } catch {
      // A response without usage, or a folder that was closed meanwhile: nothing is known of its bill.
    }
  };
  const body = new ReadableStream({
    async pull(controller) {
      const { done, value } = await reader.read();
      if (done) {
        report();
        controller.close();
      } else {
        chunks.push(value);
        controller.enqueue(value);
      }
    },
    async cancel(reason) {
      report();
      await reader.cancel(reason);
    },
  });
  const { status, statusText, headers } = response;
  return new Response(body, { status, statusText, headers });
}

exports.foldingFetch = foldingFetch;
