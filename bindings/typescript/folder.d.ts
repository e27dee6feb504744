/** The fold in process: what to send for the requests of one conversation; and tokens and files. */
import type { Bill, Reference, Report } from "./native";

/** A format of requests: OpenAI chat completions, Anthropic messages, OpenAI responses, Gemini. */
export type Format = Report["format"];

/** What is known of a model, before the built-in table. */
export interface Prices {
  /** How its name begins; without it, all models are meant. */
  readonly name?: string;
  /** Tokens that it takes, the answer included. */
  readonly context?: number;
  /** Dollars for a million tokens of input. */
  readonly input?: number;
  /** Dollars for a million tokens of output. */
  readonly output?: number;
  /** The share of the input price for reading from the cache. */
  readonly read?: number;
  /** The share for writing to the cache. */
  readonly write?: number;
  /** The share for writing to a cache that holds for an hour. */
  readonly writeHour?: number;
  /** The shortest prefix that is cached, in tokens. */
  readonly least?: number;
  /** How many seconds a prefix is held. */
  readonly life?: number;
}

/** What is never folded. */
export interface Policy {
  /** Names of tools, whose calls and outputs stay as they are. */
  readonly tools?: readonly string[];
  /** Patterns of paths, as in `docs/*.md`, of which everything that is known stays in view. */
  readonly paths?: readonly string[];
}

/** What a {@link Folder} takes. */
export interface FolderOptions {
  /** The most tokens of a request, at least 4000; otherwise 112 000. */
  readonly budget?: number;
  /** What is known of models, before the built-in table: one, or several with names. */
  readonly prices?: Prices | readonly Prices[];
  /** What is never folded. */
  readonly policy?: Policy;
  /** The directory beneath which files are read that messages name as `#path`; otherwise none are read. */
  readonly baseDir?: string;
  /** The format of all requests; otherwise each is looked at. */
  readonly format?: Format;
}

/** What to send for a request, and what was decided about it. */
export interface Folded<Body = unknown> extends Readonly<Report> {
  /** The body to send. */
  readonly body: Uint8Array;
  /** The body to send as an object. What is not changed is what was passed, not a copy. */
  json(): Body extends string | Uint8Array | ArrayBuffer ? any : Body;
  /** The messages to send; for OpenAI responses the items of `input`, for Gemini the `contents`. */
  readonly messages: any[];
}

/**
 * Decides what to send for the requests of one conversation, as the gateway would, byte for byte.
 *
 * ```ts
 * const folder = new Folder({ budget: 64_000 });
 * const folded = await folder.request({ model: "gpt-5", messages });
 * const response = await client.chat.completions.create(folded.json());
 * folder.usage(response, folded);
 * ```
 *
 * Pass whole requests, as if there were no folder: it remembers what it has folded.
 */
export class Folder implements Disposable {
  constructor(options?: FolderOptions);
  /** Goes on from what {@link snapshot} returned, in this process or another, with the same bytes. */
  static restore(snapshot: string, options?: FolderOptions): Folder;
  /**
   * Resolves to what to send for a request: the JSON body of Anthropic messages, OpenAI chat completions, OpenAI
   * responses or Gemini, as bytes, text or an object. The same request gets the same bytes again. The work is done in
   * another thread; wait for one request of a conversation before the next.
   */
  request<Body extends object | string>(body: Body): Promise<Folded<Body>>;
  /** The same at once, in this thread. */
  requestSync<Body extends object | string>(body: Body): Folded<Body>;
  /**
   * Tells the folder what the provider billed, by which it corrects its counts and decides when folding pays: a
   * response, its `usage`, or the bytes of a stream; of a request, otherwise of the newest.
   */
  usage(reported: object | string, of?: Folded): Bill;
  /**
   * Tells the folder that the provider refused a request: what was decided about it is reverted. If the provider then
   * accepted the original for the second time, nothing more is folded.
   */
  refused(of?: Folded, options?: { readonly originalWasAccepted?: boolean }): void;
  /** What was decided so far, as JSON, for {@link restore}. It contains texts of the conversation. */
  snapshot(): string;
  /** Frees the memory of the folder. What is used after that throws a `ClosedError`. */
  close(): void;
  /** The same, for `using`. */
  [Symbol.dispose](): void;
}

/**
 * The files that a text names, as in `#src/main.rs` or `#notes.md:10-40`, in order.
 *
 * With a base directory they are read, and nothing outside it ever is: files are opened by handle, symbolic links are not
 * followed, and only kinds of files are read that are text.
 */
export function references(text: string, baseDir?: string): Promise<Reference[]>;

/** The number of tokens of a text: exactly as newer models of OpenAI count, or estimated from its bytes. */
export function countTokens(text: string, counter?: "o200k" | "estimate"): number;
