/** What can go wrong, as errors: a sentence, and a hint where something can be done. */

/** The base of all errors of this package. */
export class ContextureError extends Error {
  constructor(sentence: string, hint?: string);
  /** What was tried, and what stopped it. */
  readonly sentence: string;
  /** What can be done about it. */
  readonly hint: string | undefined;
}
/** Something that was passed cannot be used: a budget of zero, or a body that is no request. */
export class InputError extends ContextureError {}
/** Something was used after it was closed, or before it was there. */
export class ClosedError extends ContextureError {}
/** The gateway cannot start, or has ended on its own. */
export class GatewayError extends ContextureError {}
/** What is stored cannot be read or written. */
export class StoreError extends ContextureError {}
