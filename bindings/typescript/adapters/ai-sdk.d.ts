import type { LanguageModelMiddleware } from "ai";
import type { Folder, FolderOptions } from "../folder";

/**
 * A middleware of the Vercel AI SDK that folds what a model is sent.
 *
 * ```ts
 * const model = wrapLanguageModel({ model: openai("gpt-5"), middleware: folding({ budget: 64_000 }) });
 * ```
 *
 * The messages of the program stay whole: pass them all every time. Conversations are told apart by what they say. It
 * takes the options of a folder, or a folder whose format is `chat`.
 */
export function folding(
  options?: Omit<FolderOptions, "format"> | Folder,
): LanguageModelMiddleware & { readonly folder: Folder };
