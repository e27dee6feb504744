// Everything from the file that the page is in.

import type { About, Block, Conversation, Data, FileEvent, FileLine, Form, Hit, Overview, RequestLine, Source, State, Story, ToolLine } from "./types";

type Row = [id: number, state: State, reason: number, grade: number, gradeReason: number, other: number];

interface Told {
  keep: number;
  rows: Row[];
  first: number | null;
  boundary: number | null;
}

interface Kept {
  source: Source;
  kind: string;
  role: string;
  name: string;
  call: string;
  is_error: boolean;
  tokens: number;
  bytes: number;
  preview: string;
  since: number;
  made: string;
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
  stories: Story[];
}

const readOnly = () => Promise.reject(new Error("an exported conversation cannot be changed"));

export function offline(json: string): Data {
  const data: Exported = JSON.parse(json);
  const word = (place: number) => (place > 0 ? data.words[place - 1] : undefined);

  /** The rows of a window: each is told by what it shares with the one before. */
  function rows(form: Form, n: number): Row[] {
    let rows: Row[] = [];
    for (const told of data.windows[form].slice(0, n)) rows = rows.slice(0, told.keep).concat(told.rows);
    return rows;
  }

  function block(n: number, row: Row, place: number): Block {
    const [id, state, reason, grade, gradeReason, other] = row;
    const { text: _, call: __, ...kept } = data.blocks[id]!;
    return {
      ...kept, place, id, state, is_pinned: false,
      views: data.stories[n - 1]?.views.filter((view) => view.block === id && view.is_written),
      reason: word(reason), grade: word(grade), grade_reason: word(gradeReason), other: other || undefined,
    };
  }

  return {
    about: async () => data.about,
    conversations: async () => ({ items: [data.conversation], total: 1 }),
    conversation: async () => data.conversation,
    turns: async () => data.requests.filter((line) => line.said).map(({ n, turn, said }) => ({ n, turn, said: said! })),
    async requests(_, from, limit) {
      const start = Math.max(0, from - 1);
      return { items: data.requests.slice(start, start + limit), total: data.requests.length };
    },
    async window(_, n, query) {
      const told = data.windows[query.form][n - 1]!;
      let all = rows(query.form, n).map((row, place) => block(n, row, place));
      const states: Partial<Record<State, number>> = {};
      for (const { state } of all) states[state] = (states[state] ?? 0) + 1;
      const tokens = all.reduce((sum, { state, tokens }) => sum + (state === "gone" ? 0 : tokens), 0);
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
