// A provider's prompt cache, as its pages describe it, and what a request is billed by it. Read on 2026-11-18:
// https://platform.claude.com/docs/en/build-with-claude/prompt-caching (marks, order, 20 blocks, shortest prefix, lives)
// and https://developers.openai.com/api/docs/guides/prompt-caching (from 1 024 tokens on, in steps of 128; what is written
// costs more from GPT-5.6 on, and is told, but not to logins, as people report: UNTOLD=1), and, on the day after,
// https://ai.google.dev/gemini-api/docs/caching (implicit, from 2 048 tokens on for Gemini 2.5 and 4 096 for later ones).

import { createHash } from "node:crypto";

const lookback = 20;
const lives = { "5m": 5 * 60_000, "1h": 60 * 60_000 };
const list = (value) => (Array.isArray(value) ? value : []);
const sorted = (value) => (Array.isArray(value) ? value.map(sorted) : value && typeof value === "object" ? Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])])) : value);

// What is cached, in the provider's order: tools, system, messages. A text is the same as a list with one text.
function blocks(kind, body) {
  const texts = (content) => (typeof content === "string" ? [{ type: "text", text: content }] : list(content));
  if (kind === "gemini") return [...list(body.tools), body.systemInstruction ?? [], ...body.contents].map((value) => ({ value }));
  if (kind !== "messages") return [...list(body.tools), ...(body.instructions ? [body.instructions] : []), ...(body.messages ?? body.input)].map((value) => ({ value }));
  const said = body.messages.flatMap(({ role, content }) => texts(content).map((block) => ({ role, block })));
  const all = [...list(body.tools).map((block) => ({ block })), ...texts(body.system).map((block) => ({ role: "system of all", block })), ...said];
  const made = all.map(({ role, block: { cache_control: mark, ...block } }) => ({ value: { role, block }, life: mark && (mark.ttl ?? "5m") }));
  // One mark for all stands at the last block.
  if (body.cache_control) made.at(-1).life ??= body.cache_control.ttl ?? "5m";
  return made;
}

export class Cache {
  held = new Map();

  constructor({ least = 1024, now = Date.now } = {}) {
    Object.assign(this, { least, now });
  }

  // The tokens of a request: read, written for minutes, written for an hour, and not cached.
  serve(kind, body) {
    const chain = [];
    let [hash, bytes] = [body.model ?? "", 0];
    for (const { value, life } of blocks(kind, body)) {
      const text = JSON.stringify(sorted(value));
      hash = createHash("sha256").update(hash).update(text).digest("base64");
      bytes += Buffer.byteLength(text);
      chain.push({ hash, life, end: Math.floor(bytes / 4) });
    }
    if (kind === "messages") return this.marked(chain);
    if (kind === "gemini") return this.automatic(chain, /gemini-2/.test(body.model) ? 2048 : 4096, 1);
    const took = this.automatic(chain);
    const isWritten = /gpt-(5\.[6-9]|[6-9])/.test(body.model ?? "") && took.total >= this.least && !process.env.UNTOLD;
    return isWritten ? { ...took, minutes: took.plain, plain: 0 } : took;
  }

  holds({ hash }) {
    return (this.held.get(hash)?.until ?? 0) >= this.now();
  }

  keep({ hash }, life) {
    this.held.set(hash, { life, until: this.now() + lives[life] });
  }

  marked(chain) {
    const total = chain.at(-1)?.end ?? 0;
    const marks = chain.flatMap(({ life, end }, at) => (life && end >= this.least ? [at] : []));
    if (marks.length === 0) return { total, read: 0, minutes: 0, hour: 0, plain: total };
    const looked = marks.flatMap((mark) => Array.from({ length: lookback }, (_, back) => mark - back));
    const found = Math.max(-1, ...looked.filter((at) => at >= 0 && this.holds(chain[at])));
    const read = found < 0 ? 0 : chain[found].end;
    if (found >= 0) this.keep(chain[found], this.held.get(chain[found].hash).life);
    for (const at of marks) this.keep(chain[at], chain[at].life);
    const last = chain[marks.at(-1)].end;
    const long = Math.max(read, ...marks.filter((at) => chain[at].life === "1h").map((at) => chain[at].end));
    return { total, read, hour: long - read, minutes: Math.max(0, last - long), plain: total - Math.max(last, read) };
  }

  automatic(chain, least = this.least, step = 128) {
    const total = chain.at(-1)?.end ?? 0;
    const shared = chain.findIndex((one) => !this.holds(one));
    const same = chain[(shared === -1 ? chain.length : shared) - 1]?.end ?? 0;
    const read = same >= least ? Math.floor(same / step) * step : 0;
    for (const one of chain) this.keep(one, "5m");
    return { total, read, minutes: 0, hour: 0, plain: total - read };
  }
}

// A bill in tokens at the plain price of input.
export const billed = (took, { read = 0.1, minutes = 1.25, hour = 2 } = {}) => took.plain + read * took.read + minutes * took.minutes + hour * took.hour;

// The same in the words of the provider's answer.
export function usage(kind, took) {
  if (kind !== "messages") return { input_tokens: took.total, input_tokens_details: { cached_tokens: took.read, cache_write_tokens: took.minutes }, output_tokens: 10 };
  const written = { ephemeral_5m_input_tokens: took.minutes, ephemeral_1h_input_tokens: took.hour };
  return { input_tokens: took.plain, cache_read_input_tokens: took.read, cache_creation_input_tokens: took.minutes + took.hour, cache_creation: written, output_tokens: 10 };
}
