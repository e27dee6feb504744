/* Made of the types of bindings/typescript/native by bindings/test; not to be edited. */

/** The folder that `Folder` uses. */
export declare class NativeFolder {
  /** A folder with options, which are JSON, and what it goes on from. */
  constructor(options: string, snapshot?: string | undefined | null)
  /** What to send for a request, decided in another thread. */
  request(body: Uint8Array): Promise<NativeFolded>
  /** The same at once. */
  requestSync(body: Uint8Array): NativeFolded
  /** Notes what was billed for a request. Returns the bill. */
  usage(of: number | undefined | null, reported: Uint8Array): Bill
  /** Notes that the provider refused a request. */
  refused(of: number | undefined | null, originalWasAccepted: boolean): void
  /** What was decided so far, as JSON. */
  snapshot(): string
  /** Frees what is in memory, once other threads have finished with it. */
  close(): void
}

/** The memory that `Memory` uses. */
export declare class NativeMemory {
  /** Adds messages, as JSON, to a conversation that can be searched. Resolves to how many are new. */
  importMessages(thread: string, messages: string): Promise<number>
  /** Adds a recorded session of an agent. Resolves to how many messages are new. */
  importRecording(thread: string, bytes: Uint8Array): Promise<number>
  /** What past conversations say about a text. */
  search(text: string, budget: number, isFull: boolean): Promise<Found>
  /** Remembers a fact. Resolves to its name. */
  remember(fact: NewNativeFact): Promise<string>
  /** The facts; those that are no longer true too if they are asked for. */
  facts(withPast: boolean): Promise<Array<Fact>>
  /** Forgets a fact for good. Resolves to how many facts are gone with it. */
  forget(id: string): Promise<number>
  /** Closes the store. */
  close(): Promise<void>
}

/** What was billed for a request. */
export interface Bill {
  /** What was billed for input, in tokens at the plain input price. */
  billed: number
  /** What would have been billed without the folder. */
  passedThrough: number
  /** Input tokens that were sent. */
  sent: number
  /** Input tokens that would have been sent without the folder. */
  came: number
}

/** The number of tokens of a text. */
export declare function countTokens(text: string, counter: string): number

/** One thing that was decided about a request. */
export interface Decision {
  /** Its kind. */
  what: 'fold' | 'shorten' | 'bring back' | 'cold' | 'disk' | 'reference' | 'memory' | (string & {})
  /** Why. */
  reason: string
  /** Whether it is a fold that the budget forced. */
  isForced: boolean
  /** Tokens of the conversation before it. */
  beforeTokens: number
  /** Tokens of the conversation after it. */
  afterTokens: number
  /** What a fold makes the provider bill again, in tokens at the plain input price. */
  cost: number
  /** What a fold saves in every later request, in tokens at the plain input price. */
  savesPerRequest: number
}

/** Something that is remembered. */
export interface Fact {
  /** Its name. */
  id: string
  /** The fact as a sentence. */
  text: string
  /** What it is about: `user`, a person, a project, a thing. */
  entity: string
  /** Which property of it; empty where there is none. */
  attribute: string
  /** The value of that property. */
  value: string
  /** Who said it. */
  saidBy: 'user' | 'assistant' | 'tool' | 'file'
  /** Words of its source that say it. */
  quote: string
  /** Whether it is true now, as far as is known. */
  isCurrent: boolean
  /** Since when it is true, in milliseconds since 1970. */
  validFromMs: number
  /** Since when it is no longer true. */
  validToMs?: number
}

/** The files that a text names, with their texts if a directory is given. */
export declare function findReferences(text: string, baseDir?: string | undefined | null): Promise<Array<Reference>>

/** What past conversations say about a text. */
export interface Found {
  /** All passages as one text for a model, with dates and speakers; empty if nothing was found. */
  text: string
  /** Its tokens. */
  tokens: number
  /** The passages: the best of each conversation first, then the others. */
  passages: Array<Passage>
}

/** What to send for a request. */
export interface NativeFolded {
  /** The body to send; missing for the one that was passed. */
  changed?: Buffer
  /** What was decided. */
  report: Report
}

/** A fact to remember. */
export interface NewNativeFact {
  /** The fact as a sentence. */
  text: string
  /** What it is about. */
  entity?: string
  /** Which property of it. */
  attribute?: string
  /** The value of that property. */
  value?: string
}

/** Opens a store, which is made if it does not exist: the memory of a project, or of a user. */
export declare function openMemory(store: string, owner: string, isProject: boolean): Promise<NativeMemory>

/** A part of a past conversation. */
export interface Passage {
  /** The conversation. */
  thread: string
  /** Who said it. */
  role: string
  /** What was said, or an excerpt of it. */
  text: string
  /** When, in milliseconds since 1970. */
  atMs?: number
  /** How well it fits. */
  score: number
}

/** A file that a text names as `#path`. */
export interface Reference {
  /** The path as written. It was not checked: it may lead anywhere. */
  path: string
  /** Where it begins in the text. */
  start: number
  /** Where it ends. */
  end: number
  /** The first line that it is limited to. */
  firstLine?: number
  /** The last line that it is limited to. */
  lastLine?: number
  /** The text of the file, if a base directory was given and it can be read there. */
  text?: string
  /** Why the file was not read. */
  problem?: string
}

/** What was decided about a request. */
export interface Report {
  /** The number of the request in its folder. */
  number: number
  /** The format that it is written in. */
  format: 'chat' | 'messages' | 'responses' | 'gemini'
  /** Whether the body differs from what was passed. */
  isChanged: boolean
  /** Why nothing new was decided, if that is so. */
  passed?: string
  /** The decisions that take effect with it. */
  decisions: Array<Decision>
  /** Tokens of the body to send, by our own count. */
  sentTokens: number
  /** Tokens of what was passed, by our own count. */
  cameTokens: number
  /** The name of the conversation. A request that differs inside begins a branch with a name of its own. */
  conversation?: string
}
