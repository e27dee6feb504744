/** Memory in process: facts, and the search over past conversations. */
import type { Fact, Found } from "./native";

/** Whose memory it is: of a user, of a project, otherwise of the user `me`. Nothing is found across them. */
export type Owner = { readonly user?: string } | { readonly project?: string };

/** What a fact is about. */
export interface FactOptions {
  /** What it is about: a person, a project, a thing. */
  readonly entity?: string;
  /** Which property of it. */
  readonly attribute?: string;
  /** The value of that property. A newer one takes the place of the older, which stays in its history. */
  readonly value?: string;
}

/** A message of a conversation. */
export interface SessionMessage {
  readonly role: string;
  readonly content?: unknown;
  /** Its id, where one is known. */
  readonly id?: string | number;
  /** When it was said. */
  readonly at?: string | Date;
}

/**
 * What is remembered of one user or one project: facts, and past conversations that can be searched.
 *
 * ```ts
 * await using memory = await Memory.open("memory.db", { user: "ann" });
 * await memory.remember("Ann prefers tabs.");
 * ```
 */
export class Memory implements AsyncDisposable {
  private constructor();
  /** Opens a store: a SQLite file, which is made if it does not exist, or `postgres://user@host/database`. */
  static open(store: string, owner?: Owner): Promise<Memory>;
  /**
   * Adds a conversation, so that it can be searched: the path of a recording of an agent, or messages. Keys and passwords
   * are replaced by their kind. Resolves to how many messages are new.
   */
  importSession(session: string | URL | Iterable<SessionMessage>, options?: { readonly thread?: string }): Promise<number>;
  /**
   * What past conversations say about a text, within a budget of tokens (1000). Only what fits well is found, which may
   * be nothing; with `full`, as much as there is room for.
   */
  search(text: string, options?: { readonly budget?: number; readonly full?: boolean }): Promise<Found>;
  /** Remembers a fact, as said by the user. Resolves to its name. */
  remember(text: string, options?: FactOptions): Promise<string>;
  /** The facts that are true now, oldest first; with `withPast` also those that were. */
  facts(options?: { readonly withPast?: boolean }): Promise<Fact[]>;
  /**
   * Forgets a fact for good, with its older values, also in the search over past conversations. Resolves to how many facts
   * are gone.
   */
  forget(id: string): Promise<number>;
  /** Closes the store. What is used after that throws a `ClosedError`. */
  close(): Promise<void>;
  /** The same, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}
