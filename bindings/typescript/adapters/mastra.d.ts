import type { ProcessLLMRequestArgs, ProcessLLMRequestResult, ProcessLLMResponseArgs } from "@mastra/core/processors";
import type { Folder, FolderOptions } from "../folder";

/**
 * An input processor of Mastra that folds what a model is sent.
 *
 * ```ts
 * const agent = new Agent({ …, inputProcessors: [new Folding({ budget: 64_000 })] });
 * ```
 *
 * What the agent and its memory keep stays whole. It takes the options of a folder, or a folder whose format is `chat`.
 */
export class Folding {
  constructor(options?: Omit<FolderOptions, "format"> | Folder);
  readonly id: "contexture";
  readonly name: string;
  /** The folder, for snapshots. */
  readonly folder: Folder;
  processLLMRequest(args: ProcessLLMRequestArgs): Promise<ProcessLLMRequestResult>;
  processLLMResponse(args: ProcessLLMResponseArgs): Promise<void>;
}
