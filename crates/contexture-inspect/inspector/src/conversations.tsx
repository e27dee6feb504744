// The list of conversations.

import { useRef, useState } from "preact/hooks";
import { List } from "./list";
import { go } from "./route";
import { Mark, billed } from "./mark";
import { dollars, plural, safe, when } from "./text";
import type { Conversation } from "./types";
import { PAGE, useAbout, useData, useLoaded, usePages } from "./use";

export function Conversations({ news }: { news: number }) {
  const data = useData();
  const about = useAbout();
  const [, redraw] = useState(0);
  const [chosen, setChosen] = useState<{ row: number; id?: string }>({ row: 0 });
  const first = useLoaded(() => data.conversations(0, PAGE), [news]);
  const pages = usePages<Conversation>(`conversations ${news}`, async (page) => (await data.conversations(page * PAGE, PAGE)).items);
  const total = first.value?.total ?? 0;
  // The order stays while the pointer is on the list: what is pressed is what was aimed at.
  const held = useRef<string[] | undefined>(undefined);
  const items = steady(first.value?.items ?? [], held.current);
  if (first.value) pages.put(0, items);
  const hold = () => {
    held.current = items.map(({ id }) => id);
  };
  const letGo = () => {
    held.current = undefined;
    redraw((count) => count + 1);
  };
  // Who is selected stays selected, wherever it moves.
  const moved = items.findIndex(({ id }) => id === chosen.id);
  const selected = Math.min(moved < 0 ? chosen.row : moved, Math.max(0, total - 1));
  const select = (row: number) => setChosen({ row, id: pages.row(row)?.id });
  if (first.error) return <p class="note bad">{first.error}</p>;
  if (first.value && total === 0) {
    return (
      <div class="note">
        <p>No request has come yet.</p>
        <p class="dim">This page fills by itself as soon as the agent asks its model something.</p>
      </div>
    );
  }
  const open = (row: number) => {
    const conversation = pages.row(row);
    if (conversation) go({ view: "conversation", conversation: conversation.id });
  };
  const unread = first.value?.items.some((conversation) => conversation.is_unread) ?? false;
  return (
    <>
      <p class="count dim">
        {total > 0 && plural(total, about.kind === "recordings" ? "recording" : "conversation")}, newest first{unread && "; each is read when it is opened"}
      </p>
      <div class="holding" onMouseEnter={hold} onMouseLeave={letGo}>
        <List
          id="conversations"
          label="Conversations"
          takesFocus
          total={total}
          height={58}
          selected={selected}
          subject="conversations"
          onSelect={select}
          onOpen={open}
          render={(row) => {
            const conversation = pages.row(row);
            return conversation ? <Line conversation={conversation} /> : <span class="dim">…</span>;
          }}
        />
      </div>
    </>
  );
}

/** Conversations in an order that somebody is looking at; those that are new come last. */
function steady(items: Conversation[], order: string[] | undefined): Conversation[] {
  if (!order) return items;
  const place = ({ id }: Conversation) => (order.includes(id) ? order.indexOf(id) : order.length);
  return [...items].sort((one, other) => place(one) - place(other));
}

export function titleOf(conversation: Conversation): string {
  return safe(conversation.title || conversation.name || conversation.id);
}

function Line({ conversation }: { conversation: Conversation }) {
  const { requests, turns, folds, failed, model, last_ms, is_reading, is_unread, name, parent, agent, project, dollars: paid, simulated, shape } = conversation;
  const facts = [agent, project, name && name !== titleOf(conversation) ? name : "", !agent && model].filter(Boolean).join(" · ");
  return (
    <div class="conversation">
      <Shape shape={shape ?? []} />
      <div class="first">
        <bdi class="title">{titleOf(conversation)}</bdi>
        <span class="right">
          {is_reading ? "reading…" : is_unread ? "" : <>{paid && <b>{dollars(paid[0])} </b>}{paid && <Mark origin={billed(simulated > 0)} />}</>}
        </span>
      </div>
      <div class="second">
        {parent && <span class="tag">branch</span>}
        {!is_unread && <span>{plural(requests, "request")}, {plural(turns, "turn")}</span>}
        {folds > 0 && <span class="accent">{plural(folds, "fold")}</span>}
        {failed > 0 && <span class="bad">{failed} failed</span>}
        <bdi class="grow">{safe(facts)}</bdi>
        <span class="right">{when(last_ms)}</span>
      </div>
    </div>
  );
}

/** How large the requests of a conversation were, as a small picture. */
function Shape({ shape }: { shape: number[] }) {
  const most = Math.max(1, ...shape);
  return (
    <svg class="shape" viewBox="0 0 24 10" preserveAspectRatio="none" aria-hidden="true">
      {shape.map((tokens, at) => <rect key={at} class="fill-file" x={at} width={0.85} y={10 - (10 * tokens) / most} height={(10 * tokens) / most} />)}
    </svg>
  );
}
