// Everything from the file that the page is in.

import type { About, Block, Conversation, ConversationEvent, Data, FileEvent, FileLine, FileView, Form, Grade, Hit, Overview, Part, RequestLine, Source, State, Story, ToolLine } from "./types";

type Row = [id: number, state: State, reason: number, grade: Grade | null, gradeReason: number, other: number];

interface Told {
  keep: number;
  rows: Row[];
  first: number | null;
  boundary: number | null;
}

interface Kept {
  source: Source;
  kind: string;
  part: Part;
  role: string;
  name: string;
  call: string;
  is_error: boolean;
  tokens: number;
  bytes: number;
  preview: string;
  since: number;
  made: string;
  views: FileView[];
  text: string;
}

interface Exported {
  about: About;
  conversation: Conversation;
  requests: RequestLine[];
  blocks: Record<string, Kept>;
  words: string[];
  windows: Record<Form, Told[]>;
  files: FileLine[];
  history: Record<string, FileEvent[]>;
  tools: ToolLine[];
  overview: Overview;
  events: ConversationEvent[];
  stories: Story[];
}

/** What the file has inside: compressed, as text. */
async function unpacked(text: string): Promise<Exported> {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"))).json();
}

const readOnly = () => Promise.reject(new Error("an exported conversation cannot be changed"));

export async function offline(text: string): Promise<Data> {
  const data = await unpacked(text);
  const word = (place: number) => (place > 0 ? data.words[place - 1] : undefined);

  /** The rows of a window: each is told by what it shares with the one before. */
  function rows(form: Form, n: number): Row[] {
    let rows: Row[] = [];
    for (const told of data.windows[form].slice(0, n)) rows = rows.slice(0, told.keep).concat(told.rows);
    return rows;
  }

  function block(row: Row, place: number, scale: number): Block {
    const [id, state, reason, grade, gradeReason, other] = row;
    const { text: _, call: __, ...kept } = data.blocks[id]!;
    return {
      ...kept, place, id, state, is_pinned: false, tokens: Math.round(kept.tokens * scale),
      reason: word(reason), grade: grade ?? undefined, grade_reason: word(gradeReason), other: other || undefined,
    };
  }

  return {
    about: async () => data.about,
    conversations: async () => ({ items: [data.conversation], total: 1 }),
    conversation: async () => data.conversation,
    events: async () => data.events,
    async requests(_, from, limit) {
      const start = Math.max(0, from - 1);
      return { items: data.requests.slice(start, start + limit), total: data.requests.length };
    },
    async window(_, n, query) {
      const told = data.windows[query.form][n - 1]!;
      const line = data.requests[n - 1]!;
      const tokens = query.form === "came" ? line.came_tokens : line.sent_tokens;
      const listed = rows(query.form, n);
      const own = listed.reduce((sum, [id, state]) => sum + (state === "gone" ? 0 : data.blocks[id]!.tokens), 0);
      let all = listed.map((row, place) => block(row, place, own > 0 ? tokens / own : 1));
      const states: Partial<Record<State, number>> = {};
      for (const { state } of all) states[state] = (states[state] ?? 0) + 1;
      if (query.bySize) all = all.sort((one, other) => other.tokens - one.tokens);
      const at = query.block === undefined ? -1 : all.findIndex(({ id }) => id === query.block);
      const from = at < 0 ? query.from : Math.floor(at / query.limit) * query.limit;
      return {
        form: query.form, total: all.length, tokens, states, from, at: at < 0 ? undefined : at,
        first_difference: told.first, cache_boundary: told.boundary, blocks: all.slice(from, from + query.limit),
      };
    },
    async block(_, id) {
      const { source, kind, name, call, bytes, text } = data.blocks[id]!;
      return { id, source, kind, name, call, bytes, from: 0, text };
    },
    files: async () => data.files,
    history: async (_, path) => data.history[path] ?? [],
    tools: async () => data.tools,
    overview: async () => data.overview,
    story: async (_, n) => ({ ...data.stories[n - 1]!, line: data.requests[n - 1]! }),
    bill: async () => ({ items: [], unread: 0, conversations: 1 }),
    openAll: readOnly,
    async search(words) {
      const wanted = words.toLowerCase();
      const items: Hit[] = [];
      for (const [id, { text, source, name, since }] of Object.entries(data.blocks)) {
        const at = text.toLowerCase().indexOf(wanted);
        if (at < 0) continue;
        const end = at + words.length;
        items.push({
          conversation: data.conversation.id, title: data.conversation.title, n: since, source, name, block: Number(id),
          form: source === "made" ? "sent" : "came",
          before: text.slice(Math.max(0, at - 100), at), found: text.slice(at, end), behind: text.slice(end, end + 100),
        });
        if (items.length >= 200) break;
      }
      return { items };
    },
    canExport: false,
    exported: () => Promise.reject(new Error("this is an export already")),
    pin: readOnly,
    folding: readOnly,
    forget: readOnly,
    follow: () => () => {},
  };
}
