/** A gateway between this program and its model. */
import type { Decision } from "./native";

/** What {@link gateway} takes. */
export interface GatewayOptions {
  /** The most tokens of a request, at least 4000; otherwise 112 000. */
  readonly budget?: number;
  /**
   * Where all requests go; otherwise to what `OPENAI_BASE_URL` and `ANTHROPIC_BASE_URL` name, else to the providers' own
   * addresses.
   */
  readonly upstream?: string | URL;
  /**
   * A file or `postgres://…` in which conversations and decisions are kept, so that a program that was killed goes on
   * with the same bytes; `true` for the user's own store, which `contexture receipts` reads. Otherwise nothing is kept.
   */
  readonly store?: string | boolean;
  /** Send everything as it came, and only record what would have been done. */
  readonly observe?: boolean;
  /** The share of conversations to pass through unchanged, for comparison. */
  readonly holdout?: number;
  /**
   * The directory beneath which files are read that messages name as `#path`; otherwise none are read. Anyone who
   * writes messages can have these files read.
   */
  readonly baseDir?: string;
  /** Serve the inspector, at {@link Gateway.inspector}. */
  readonly inspect?: boolean;
  /** The program; otherwise it is found as described in `docs/typescript.md`. */
  readonly binary?: string;
}

/**
 * Starts a gateway on a free port of this machine, and resolves when it accepts requests.
 *
 * ```ts
 * await using g = await gateway({ budget: 64_000 });
 * const client = new OpenAI({ baseURL: g.openai });
 * ```
 *
 * Its addresses contain a secret, so that no other user of the machine can use it. It ends with this process, whatever
 * happens to it.
 */
export function gateway(options?: GatewayOptions): Promise<Gateway>;

/** A running gateway. */
export class Gateway implements AsyncDisposable {
  private constructor();
  /** The base URL for clients of OpenAI's API, and of those that speak it. */
  readonly openai: string;
  /** The base URL for clients of Anthropic's API. */
  readonly anthropic: string;
  /** The base URL without a provider: requests are routed by their path. */
  readonly url: string;
  /** The address of the inspector, if it was asked for. */
  readonly inspector: string | undefined;
  /** What was done and what it cost. It is there when the gateway has ended; before that, reading it throws. */
  get receipt(): Receipt;
  /** Ends the gateway, and resolves to the receipt. */
  close(): Promise<Receipt>;
  /** The same, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** The totals of all requests of a gateway. */
export interface Receipt {
  /** Requests that passed through. */
  readonly requests: number;
  /** Conversations they belong to. */
  readonly conversations: number;
  /** Requests that were sent changed. */
  readonly changed: number;
  /** Requests without the gateway's key. Nothing was done for them. */
  readonly refused: number;
  /** Requests that failed, by the provider's status. */
  readonly failed: Readonly<Record<string, number>>;
  /** Input tokens that were sent, by the provider's figures. */
  readonly sent: number;
  /** Input tokens that would have been sent without the gateway. */
  readonly came: number;
  /** Of those sent, the ones that the provider read from its cache. */
  readonly cacheRead: number;
  /** Output tokens. */
  readonly output: number;
  /** What was billed for input, in tokens at the plain input price. */
  readonly billed: number;
  /** What would have been billed without the gateway. */
  readonly passedThrough: number;
  /** What was saved, as a share of that; negative if the gateway cost more. */
  readonly savedShare: number;
  /** Dollars with and without the gateway, output included, where all prices are known. */
  readonly dollars: readonly [number, number] | undefined;
  /** The folds, in order. */
  readonly folds: readonly Decision[];
  /** How often something else was decided, by reason. */
  readonly decided: Readonly<Record<string, number>>;
  /** How often a request was sent unchanged, or without new decisions, by reason. */
  readonly passed: Readonly<Record<string, number>>;
  /** Conversations that would no longer fit into the model's window without the gateway. */
  readonly dependent: readonly string[];
  /** All of it, as the gateway printed it. */
  readonly raw: Readonly<Record<string, unknown>>;
}
