// A `fetch` for clients that take one: it folds what they send.
"use strict";

const { Conversations } = require("./conversations.js");

/** What a provider says of a request that it does not understand, or that is too long. */
const REFUSALS = [400, 413, 422];

function foldingFetch({ fetch = globalThis.fetch, ...options } = {}) {
  const conversations = new Conversations(options);
  return async (address, init = {}) => {
    const sent = await folded(conversations, address, init);
    if (sent === undefined) return fetch(address, init);
    const { conversation, folded: request } = sent;
    const changed = request.isChanged ? { ...init, headers: headersOf(init, request), body: request.body } : init;
    const response = await fetch(address, changed);
    if (request.isChanged && REFUSALS.includes(response.status)) {
      await response.body?.cancel();
      const again = await fetch(address, init);
      conversation.refused(request, again.ok);
      return again;
    }
    const billed = (bytes) => conversation.billed(request, bytes);
    return response.ok && response.body !== null ? watched(response, billed) : response;
  };
}

/** What to send for a request; nothing for one that is no part of a conversation. */
async function folded(conversations, address, { method, body }) {
  const { pathname } = new URL(address instanceof Request ? address.url : address);
  const isText = typeof body === "string" || body instanceof Uint8Array;
  return method?.toUpperCase() === "POST" && isText ? conversations.fold(pathname, body) : undefined;
}

function headersOf({ headers }, { body }) {
  const changed = new Headers(headers);
  if (changed.has("content-length")) changed.set("content-length", String(body.length));
  return changed;
}

/** The response, whose usage is reported when it was read, or is cancelled: some clients do not read to the end. */
function watched(response, billed) {
  const [reader, chunks] = [response.body.getReader(), []];
  const body = new ReadableStream({
    async pull(controller) {
      const { done, value } = await reader.read();
      if (done) {
        billed(Buffer.concat(chunks));
        controller.close();
      } else {
        chunks.push(value);
        controller.enqueue(value);
      }
    },
    async cancel(reason) {
      billed(Buffer.concat(chunks));
      await reader.cancel(reason);
    },
  });
  const { status, statusText, headers } = response;
  return new Response(body, { status, statusText, headers });
}

exports.foldingFetch = foldingFetch;
