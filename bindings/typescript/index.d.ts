/** Contexture for JavaScript and TypeScript: sends a model only what is still needed of the past. */
export { ClosedError, ContextureError, GatewayError, InputError, StoreError } from "./errors";
export {
  countTokens,
  references,
  Folder,
  type Folded,
  type FolderOptions,
  type Format,
  type Policy,
  type Prices,
} from "./folder";
export { gateway, Gateway, type GatewayOptions, type Receipt } from "./gateway";
export { Memory, type FactOptions, type Owner, type SessionMessage } from "./memory";
export type { Bill, Decision, Fact, Found, Passage, Reference } from "./native";
export { foldingFetch, type FetchOptions } from "./transport";
