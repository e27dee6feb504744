import type { Folder, FolderOptions } from "../folder";

/**
 * A `fetch` for the clients of OpenAI and Anthropic that folds what they send, and reads what is billed.
 *
 * ```ts
 * const client = new OpenAI({ fetch: foldingFetch({ budget: 64_000 }) });
 * ```
 *
 * Pass whole conversations: it remembers what it has folded. A request that the provider refuses because of a fold is sent
 * again as it was. It takes the options of a folder, or a folder.
 */
export function foldingFetch(
  options?: FolderOptions | Folder,
  over?: { readonly fetch?: typeof globalThis.fetch },
): typeof globalThis.fetch & { readonly folder: Folder };
