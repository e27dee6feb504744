// The course of a conversation: turns, and requests in which something happened; or all requests.

import { useEffect, useRef } from "preact/hooks";
import { List } from "./list";
import { plural, price, range, safe } from "./text";
import type { Conversation, ConversationEvent, RequestLine } from "./types";
import { PAGE, useData, useLoaded, usePages } from "./use";

const ROW = 30;
const TURN = 34;

interface Props {
  conversation: Conversation;
  n: number | undefined;
  /** Whether all requests are listed. */
  isAll: boolean;
  /** Counts what is new, and the request that it is about. */
  news: { count: number; n?: number };
  onSelect: (n: number) => void;
  onOpen: (n: number) => void;
}

/** Turns stand above the request that they begin with. */
interface Row {
  event: ConversationEvent;
  turn?: ConversationEvent;
}

function rowsOf(events: ConversationEvent[]): Row[] {
  const rows: Row[] = [];
  let turn: ConversationEvent | undefined;
  for (const event of events) {
    if (event.said !== undefined) turn = event;
    else rows.push({ event, turn });
    if (event.said === undefined) turn = undefined;
  }
  return rows;
}

export function Requests({ conversation, n, isAll, news, onSelect, onOpen }: Props) {
  const data = useData();
  const id = conversation.id;
  // Rows and turns change together: a turn that came later would push rows from under the pointer.
  const known = useLoaded(async () => ({ id, total: conversation.requests, events: await data.events(id).catch(() => []) }), [id, conversation.requests, news.n !== undefined && news.n <= conversation.requests ? news.count : 0]);
  const { total, events } = known.value?.id === id ? known.value : { total: 0, events: [] };
  const pages = usePages<RequestLine>(id, async (page) => (await data.requests(id, page * PAGE + 1, PAGE)).items);
  const seen = useRef(0);
  useEffect(() => {
    if (news.count === seen.current) return;
    seen.current = news.count;
    if (news.n !== undefined) pages.again(news.n - 1);
    else pages.clear();
  }, [news.count]);
  const rows = rowsOf(events);
  const turns = events.filter(({ said }) => said !== undefined);
  const turnOf = new Map(turns.map((turn) => [turn.range[0], turn]));
  const at = rows.findIndex(({ event: { range } }) => n !== undefined && range[0] <= n && n <= range[1]);
  const first = (row: number) => (isAll ? row + 1 : (rows[row]?.event.range[0] ?? 1));
  return (
    <List
      id="requests"
      label="Requests"
      takesFocus
      total={isAll ? total : rows.length}
      height={ROW}
      taller={{ rows: isAll ? turns.map((turn) => turn.range[0] - 1) : rows.flatMap(({ turn }, row) => (turn ? [row] : [])), by: TURN }}
      selected={isAll ? (n ?? 0) - 1 : at}
      subject={`${id} ${isAll}`}
      onSelect={(row) => onSelect(first(row))}
      onOpen={(row) => onOpen(first(row))}
      render={(row) => {
        const turn = isAll ? turnOf.get(row + 1) : rows[row]!.turn;
        const line = isAll ? pages.row(row) : undefined;
        return (
          <>
            {turn && (
              <div class="turn">
                <b>{turn.turn}</b> <bdi>{safe(turn.said!)}</bdi> <span>{dollarsOf(turn)}</span>
              </div>
            )}
            {isAll ? <Line line={line} n={row + 1} /> : <Event event={rows[row]!.event} n={n} />}
          </>
        );
      }}
    />
  );
}

function dollarsOf({ cost }: ConversationEvent): string {
  return cost.billed > 0 ? price(cost) : "";
}

/** A request in which something happened, or some quiet ones. */
function Event({ event, n }: { event: ConversationEvent; n: number | undefined }) {
  const [first, last] = event.range;
  const isOpen = n !== undefined && first <= n && n <= last && first < last;
  return (
    <div class={event.verdict ? "request" : "request is-quiet"}>
      <span class="number">{event.verdict || first === last ? first : isOpen ? n : ""}</span>
      <span class={event.verdict ? `verdict-${event.verdict.kind}` : "dim"}>{event.verdict ? safe(event.verdict.text) : first === last ? "" : `${range(event.range)} · ${plural(last - first + 1, "request")}`}</span>
      <span class="dim">{dollarsOf(event)}</span>
    </div>
  );
}

function Line({ line, n }: { line: RequestLine | undefined; n: number }) {
  if (!line) return <div class="request dim">{n} …</div>;
  const { verdicts, is_over, cost } = line;
  // The others happen every few requests.
  const verdict = verdicts.find(({ kind }) => kind !== "brought_back" && kind !== "paid_back");
  return (
    <div class="request">
      <span class="number">{n}</span>
      <span class={verdict ? `verdict-${verdict.kind}` : "dim"}>{!is_over ? "waiting for the answer" : verdict ? safe(verdict.text) : ""}</span>
      <span class="dim">{cost.billed > 0 && price(cost)}</span>
    </div>
  );
}
