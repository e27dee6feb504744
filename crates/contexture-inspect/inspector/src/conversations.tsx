// The list of conversations.

import { useState } from "preact/hooks";
import { List } from "./list";
import { go } from "./route";
import { percent, plural, safe, short, when } from "./text";
import type { Conversation } from "./types";
import { PAGE, usePages, useData, useLoaded } from "./use";

export function Conversations({ news }: { news: number }) {
  const data = useData();
  const [selected, setSelected] = useState(0);
  const first = useLoaded(() => data.conversations(0, PAGE), [news]);
  const pages = usePages<Conversation>(`conversations ${news}`, async (page) => (await data.conversations(page * PAGE, PAGE)).items);
  const total = first.value?.total ?? 0;
  if (first.value) pages.put(0, first.value.items);
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
  return (
    <List
      id="conversations"
      label="Conversations"
      total={total}
      height={58}
      selected={Math.min(selected, Math.max(0, total - 1))}
      subject="conversations"
      onSelect={setSelected}
      onOpen={open}
      render={(row) => {
        const conversation = pages.row(row);
        return conversation ? <Line conversation={conversation} /> : <span class="dim">…</span>;
      }}
    />
  );
}

export function titleOf(conversation: Conversation): string {
  return safe(conversation.title || conversation.name || conversation.id);
}

function Line({ conversation }: { conversation: Conversation }) {
  const { requests, turns, folds, failed, came, sent, model, last_ms, is_reading, name, parent } = conversation;
  const saved = came > sent && came > 0 ? `${percent(1 - sent / came)} not sent` : "";
  return (
    <div class="conversation">
      <div class="first">
        <bdi class="title">{titleOf(conversation)}</bdi>
        <span class="right">{is_reading ? "reading…" : plural(requests, "request")}</span>
      </div>
      <div class="second">
        {parent && <span class="tag">branch</span>}
        <span>{plural(turns, "turn")}</span>
        {folds > 0 && <span class="accent">{plural(folds, "fold")}</span>}
        {failed > 0 && <span class="bad">{failed} failed</span>}
        {saved && <span>{saved}</span>}
        {sent > 0 && <span>{short(sent)} sent</span>}
        <bdi class="grow">{safe(name || model)}</bdi>
        <span class="right">{when(last_ms)}</span>
      </div>
    </div>
  );
}
