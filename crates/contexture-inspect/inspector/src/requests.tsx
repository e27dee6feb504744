// The requests of a conversation, grouped by turns.

import { useEffect, useRef } from "preact/hooks";
import { Bar } from "./bar";
import { List } from "./list";
import { duration, safe, short } from "./text";
import type { Conversation, RequestLine } from "./types";
import { PAGE, useData, useLoaded, usePages } from "./use";

const ROW = 42;
const TURN = 30;

interface Props {
  conversation: Conversation;
  n: number | undefined;
  /** Counts what is new, and the request that it is about. */
  news: { count: number; n?: number };
  onSelect: (n: number) => void;
  onOpen: (n: number) => void;
}

export function Requests({ conversation, n, news, onSelect, onOpen }: Props) {
  const data = useData();
  const id = conversation.id;
  // Rows and turns change together: a turn that came later would push rows from under the pointer.
  const known = useLoaded(async () => ({ id, total: conversation.requests, turns: await data.turns(id).catch(() => []) }), [id, conversation.requests]);
  const { total, turns } = known.value?.id === id ? known.value : { total: 0, turns: [] };
  const pages = usePages<RequestLine>(id, async (page) => (await data.requests(id, page * PAGE + 1, PAGE)).items);
  const seen = useRef(0);
  useEffect(() => {
    if (news.count === seen.current) return;
    seen.current = news.count;
    if (news.n !== undefined) pages.again(news.n - 1);
    else pages.clear();
  }, [news.count]);
  const said = new Map(turns.map((turn) => [turn.n, turn]));
  return (
    <List
      id="requests"
      label="Requests"
      takesFocus
      total={total}
      height={ROW}
      taller={{ rows: turns.map((turn) => turn.n - 1), by: TURN }}
      selected={(n ?? 0) - 1}
      subject={id}
      onSelect={(row) => onSelect(row + 1)}
      onOpen={(row) => onOpen(row + 1)}
      render={(row) => {
        const turn = said.get(row + 1);
        const line = pages.row(row);
        return (
          <>
            {turn && (
              <div class="turn">
                <b>{turn.turn}</b> <bdi>{safe(turn.said)}</bdi>
              </div>
            )}
            {line ? <Line line={line} scale={line.record.budget ?? conversation.largest} /> : <div class="request dim">{row + 1} …</div>}
          </>
        );
      }}
    />
  );
}

function Line({ line, scale }: { line: RequestLine; scale: number }) {
  const { cached_tokens } = line;
  const { first_byte_ms } = line.record;
  const verdict = line.verdicts[0];
  return (
    <div class="request">
      <span class="number">{line.n}</span>
      <Bar line={line} scale={scale} />
      <span class="tokens">{short(line.sent_tokens)}</span>
      <span class={verdict ? "under wide" : "under"}>
        {verdict ? (
          <span class={`verdict verdict-${verdict.kind}`}>{safe(verdict.text)}</span>
        ) : !line.is_over ? (
          <span class="waiting">waiting for the answer</span>
        ) : (
          cached_tokens !== null && (
            <span class="dim">{short(cached_tokens)} cached, {short(line.sent_tokens - cached_tokens)} not</span>
          )
        )}
      </span>
      {!verdict && <span class="latency dim">{first_byte_ms > 0 && duration(first_byte_ms)}</span>}
    </div>
  );
}
