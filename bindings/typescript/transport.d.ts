/** A `fetch` for clients that take one: it folds what they send. */
import type { FolderOptions } from "./folder";

/** What {@link foldingFetch} takes. */
export interface FetchOptions extends Omit<FolderOptions, "format"> {
  /** A directory in which decisions are kept, so that a program that was ended goes on with the same bytes. */
  readonly store?: string;
  /** What sends; otherwise the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch;
}

/**
 * A `fetch` that folds what a client sends, of all conversations that pass, and reads from responses what was billed.
 *
 * ```ts
 * const client = new OpenAI({ fetch: foldingFetch({ budget: 64_000 }) });
 * ```
 *
 * Pass whole conversations: what was folded is remembered. A request that the provider refuses because of a fold is sent
 * again as it was.
 */
export function foldingFetch(options?: FetchOptions): typeof globalThis.fetch;
