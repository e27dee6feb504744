// What the API hands out; docs/api.md documents it.

export type Source = "system" | "tools" | "said" | "made" | "file" | "output" | "model";
/** The parts of a window, by which all pictures are coloured. */
export type Part = "instructions" | "project_rules" | "people" | "agent" | "files" | "calls" | "newest";
export type Form = "sent" | "came" | "before";
export type State = "kept" | "shortened" | "made" | "left_out" | "same" | "behind" | "new" | "gone";

export interface About {
  version: string;
  name: string;
  kind: "gateway" | "recordings" | "store" | "export";
  is_live: boolean;
  can_act: boolean;
  can_forget: boolean;
  /** What readers must know about what is shown. */
  note?: string;
}

export interface Page<T> {
  items: T[];
  total?: number;
  next?: number;
}

export interface Conversation {
  id: string;
  title: string;
  name: string;
  agent?: string;
  project?: string;
  parent?: string;
  model: string;
  first_ms: number;
  last_ms: number;
  requests: number;
  turns: number;
  largest: number;
  came: number;
  sent: number;
  billed: number;
  passed_through: number;
  dollars: [number, number] | null;
  folds: number;
  failed: number;
  /** Requests that came after the agent would have summarised its conversation. */
  beyond: number;
  /** Requests whose bill is simulated. */
  simulated: number;
  shape?: number[];
  is_reading: boolean;
  is_unread: boolean;
  stopped?: string;
}

export interface Note {
  what: string;
  reason: string;
  before_tokens: number;
  after_tokens: number;
  cost: number;
  saves_per_request: number;
}

export interface Usage {
  input: number;
  cache_read: number;
  cache_write: number;
  cache_write_hour: number;
  output: number;
}

export interface RequestRecord {
  time_ms: number;
  model: string;
  status: number;
  is_changed: boolean;
  passed: string | null;
  decided: Note[];
  usage: Usage | null;
  is_simulated?: boolean;
  budget?: number;
  bill: { billed: number; passed_through: number; sent: number; came: number } | null;
  dollars: [number, number] | null;
  context: number | null;
  own_us: number;
  first_byte_ms: number;
}

export interface RequestLine {
  n: number;
  turn: number;
  said?: string;
  parts: Partial<Record<Part, number>>;
  sent_tokens: number;
  came_tokens: number;
  cached_tokens: number | null;
  sent_blocks: number;
  came_blocks: number;
  is_over: boolean;
  verdicts: Verdict[];
  record: RequestRecord;
  cost: Cost;
}

export type Grade = "verified" | "seen" | "changed" | "overtaken" | "read_again" | "deleted" | "unknown";

export interface FileView {
  block: number;
  path: string;
  lines: string;
  count: number;
  grade: Grade;
  moments?: [number, number];
  cause?: string;
  is_written: boolean;
}

/** What something cost: in dollars where prices are known, else in tokens at the plain input price. */
export interface Cost {
  dollars: number | null;
  billed: number;
}

export interface Verdict {
  kind: string;
  text: string;
}

export interface Column {
  n: number;
  range: [number, number];
  turn: number;
  begins: boolean;
  parts: Partial<Record<Part, number>>;
  sent: number;
  came: number;
  cost: Cost;
  is_billed_again: boolean;
  budget?: number;
  folds: number;
  verdicts: Verdict[];
}

export interface Overview {
  columns: Column[];
  budget: number | null;
  cost: Cost;
  /** What those requests cost that were billed again for what the provider had in its cache. */
  again: Cost;
}

export interface NamedBlock {
  block: number;
  name: string;
  tokens: number;
}

export interface PartLine {
  part: Part;
  tokens: number;
  blocks: number;
  largest: NamedBlock[];
}

/** A file of which a window shows lines. */
export interface ShownFile {
  path: string;
  block: number;
  lines: number;
  verified: number;
  changed: number;
  messages?: [number, number];
  requests?: [number, number];
  causes?: string[];
}

export interface Story {
  line: RequestLine;
  parts: PartLine[];
  blocks: number;
  /** What the model does not see, because the provider has compacted it. */
  hidden?: { block: number; blocks: number; tokens: number };
  again: number;
  files: ShownFile[];
  removed: { kind: string; count: number; tokens: number; largest: NamedBlock[] }[];
  fold?: {
    reason: string;
    left_out_tokens: number;
    cost: Cost;
    saves_per_request: Cost;
    estimated?: Cost;
    paid_back: number | null;
    next: number | null;
    cut: [string, string, number][];
  };
  /** The newest fold that had no room for the agent's own changes, with the files. */
  lost?: [number, string[]];
  /** Signs that something was missing, with the newest requests in which they were seen. */
  signals?: { kind: string; count: number; requests: number[] }[];
  answer: { id: number; kind: string; name: string; tokens: number; preview: string }[];
  times_usual: number;
  dollars: [number, number] | null;
}

/** The start of a turn, a request in which something happened, or quiet ones. */
export interface ConversationEvent {
  range: [number, number];
  turn: number;
  said?: string;
  verdict?: Verdict;
  cost: Cost;
}

export interface Block {
  place: number;
  id: number;
  source: Source;
  kind: string;
  part: Part;
  role: string;
  name: string;
  made?: string;
  views?: FileView[];
  tokens: number;
  bytes: number;
  is_error: boolean;
  preview: string;
  state: State;
  reason?: string;
  grade?: string;
  grade_reason?: string;
  other?: number;
  is_pinned: boolean;
  since: number;
}

export interface WindowPage {
  form: Form;
  total: number;
  tokens: number;
  first_difference: number | null;
  cache_boundary: number | null;
  states: Partial<Record<State, number>>;
  at?: number;
  from: number;
  blocks: Block[];
  next?: number;
}

export interface BlockText {
  id: number;
  source: Source;
  kind: string;
  name: string;
  call: string;
  bytes: number;
  from: number;
  text: string;
  next?: number;
}

export interface FileLine {
  path: string;
  grade: string;
  reason: string;
  lines: number;
  graded: Partial<Record<Grade, number>>;
  is_whole: boolean;
  reads: number;
  changes: number;
  last: number;
}

export interface FileEvent {
  n: number;
  what: string;
  detail: string;
  block: number;
}

export interface ToolLine {
  name: string;
  tokens: number;
  calls: number;
  requests: number;
  billed: number;
  dollars?: number;
  block: number;
  call_tokens: number;
  output_tokens: number;
  carried: number;
  /** The block of its largest output, the request in which it first was, and its tokens. */
  largest?: [number, number, number];
}

export interface Receipt {
  requests: number;
  sent: number;
  came: number;
  cache_read: number;
  output: number;
  billed: number;
  passed_through: number;
  dollars: [number, number] | null;
  beyond?: number;
  folds: Note[];
}

export interface BillLine {
  name: string;
  title: string;
  receipt: Receipt;
  dearest: { conversation: string; n: number; billed: number }[];
  simulated: number;
}

export interface BillPage {
  items: BillLine[];
  unread: number;
  conversations: number;
}

export interface Hit {
  conversation: string;
  title: string;
  n: number;
  form: Form;
  block: number;
  source: Source;
  name: string;
  before: string;
  found: string;
  behind: string;
}

export interface WindowQuery {
  form: Form;
  bySize: boolean;
  from: number;
  limit: number;
  block?: number;
}

/** Where the page gets everything from: a server, or the file that it is in. */
export interface Data {
  about(): Promise<About>;
  conversations(from: number, limit: number): Promise<Page<Conversation>>;
  conversation(id: string): Promise<Conversation>;
  events(id: string): Promise<ConversationEvent[]>;
  requests(id: string, from: number, limit: number): Promise<Page<RequestLine>>;
  window(id: string, n: number, query: WindowQuery): Promise<WindowPage>;
  block(id: string, block: number, from: number): Promise<BlockText>;
  files(id: string): Promise<FileLine[]>;
  history(id: string, path: string): Promise<FileEvent[]>;
  tools(id: string): Promise<ToolLine[]>;
  overview(id: string, columns: number): Promise<Overview>;
  story(id: string, n: number): Promise<Story>;
  bill(by: string): Promise<BillPage>;
  /** Has all recordings read. */
  openAll(): Promise<void>;
  search(words: string, conversation: string | null, before?: number): Promise<Page<Hit>>;
  canExport: boolean;
  exported(id: string): Promise<Blob>;
  pin(id: string, block: number, pinned: boolean): Promise<void>;
  folding(id: string, allowed: boolean): Promise<void>;
  forget(id: string): Promise<void>;
  follow(told: (event: string, data: { conversation?: string; n?: number }) => void): () => void;
}
