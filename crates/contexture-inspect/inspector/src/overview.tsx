// The whole conversation as a picture: what was sent, by its parts, and what was paid beneath.

import { useMemo, useState } from "preact/hooks";
import { address } from "./route";
import { dollars, number, partNames, parts, percent, plural, price, saved, short } from "./text";
import type { Column, Conversation, Overview, Part } from "./types";

/** Columns of the picture: more cannot be told apart. */
export const COLUMNS = 240;
const HIGH = 100;
const LOW = 30;

interface Props {
  conversation: Conversation;
  /** What is drawn, if it could be read. */
  overview: Overview | undefined;
  n: number | undefined;
  onRequest: (n: number) => void;
}

/** One figure for a cost, so that bars can be compared. */
const size = ({ cost }: Column) => cost.dollars ?? cost.billed;

export function OverviewView({ conversation, overview, n, onRequest }: Props) {
  const [pointed, setPointed] = useState<Column | undefined>();
  const [part, setPart] = useState<Part>();
  // Drawn once: another request of the same conversation moves only the frame around it.
  const drawn = useMemo(() => overview && draw(overview), [overview]);
  if (!overview || overview.columns.length === 0) return null;
  const { columns, budget, cost, again } = overview;
  const top = highest(overview);
  const at = (event: MouseEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    const place = Math.floor(((event.clientX - box.left) / box.width) * columns.length);
    return columns[Math.min(columns.length - 1, Math.max(0, place))];
  };
  const open = (event: MouseEvent) => {
    const column = at(event);
    if (column) onRequest(column.n);
  };
  const chosen = n === undefined ? -1 : columns.findIndex(({ range }) => range[0] <= n && n <= range[1]);
  const handlers = { onClick: open, onMouseMove: (event: MouseEvent) => setPointed(at(event)), onMouseLeave: () => setPointed(undefined) };
  const ticks = ticksOf(top);
  const y = (tokens: number) => `${100 * (1 - tokens / top)}%`;
  const shown = parts.filter((part) => columns.some((column) => column.parts[part]));
  return (
    <section class="overview" id="overview" tabIndex={-1} aria-label="The conversation">
      <div class="caption">
        <h2>The conversation</h2>
        <ul class="legend right">
          {shown.map((name) => (
            <li key={name} onMouseEnter={() => setPart(name)} onMouseLeave={() => setPart(undefined)}><i class={`dot part-${name}`} />{partNames[name]}</li>
          ))}
        </ul>
      </div>
      <div class={part ? `graph only-${part}` : "graph"}>
        <div class="stacked">
          <svg class="stack" viewBox={`0 0 ${columns.length} ${HIGH}`} preserveAspectRatio="none" role="img" aria-label={spoken(overview)} {...handlers}>
            {drawn?.stacks}
          </svg>
          {ticks.map((tokens) => <i key={tokens} class="tick" style={{ top: y(tokens) }}><b>{short(tokens)}</b></i>)}
          {budget !== null && <i class="budget" style={{ top: y(budget) }}>budget {short(budget)}</i>}
        </div>
        <div class="turns" aria-hidden="true">
          {turnLabels(columns).map(({ place, turn }) => <i key={place} style={{ left: `${(100 * place) / columns.length}%` }}>turn {turn}</i>)}
        </div>
        <svg class="bills" viewBox={`0 0 ${columns.length} ${LOW}`} preserveAspectRatio="none" aria-hidden="true" {...handlers}>
          {drawn?.bills}
        </svg>
        {chosen >= 0 && <i class="chosen" style={{ left: `${(100 * chosen) / columns.length}%`, width: `${100 / columns.length}%` }} />}
      </div>
      <div class="caption small dim">
        <span>
          {pointed ? (
            <><b>Request {pointed.n}</b>: {short(pointed.sent)} sent, {price(pointed.cost)}{pointed.verdicts[0] && `, ${pointed.verdicts[0].text}`}</>
          ) : (
            <>{conversation.simulated > 0 ? "would be billed" : "billed"} {price(cost)} in all{again.billed > 0 && <> · <i class="dot is-again" />folds and lost caches, {price(again)} of it</>}</>
          )}
        </span>
        <Sum conversation={conversation} />
      </div>
      <details class="behind-picture">
        <summary>As a table</summary>
        <div class="scroll" tabIndex={0} role="region" aria-label="The conversation as a table">
          <table>
            <caption>What was sent and paid{columns.some(({ range }) => range[0] !== range[1]) && ", the dearest of some requests each"}</caption>
            <thead>
              <tr>
                <th scope="col">request</th>
                <th scope="col" class="right">turn</th>
                <th scope="col" class="right">sent</th>
                {shown.map((part) => <th key={part} scope="col" class="right">{partNames[part]}</th>)}
                <th scope="col" class="right">paid</th>
                <th scope="col">what happened</th>
              </tr>
            </thead>
            <tbody>
              {columns.map((column) => (
                <tr key={column.n}>
                  <td><a href={address({ conversation: conversation.id, n: column.n })}>{column.n}</a></td>
                  <td class="right">{column.turn}</td>
                  <td class="right">{number(column.sent)}</td>
                  {shown.map((part) => <td key={part} class="right">{number(column.parts[part] ?? 0)}</td>)}
                  <td class="right">{price(column.cost)}</td>
                  <td>{column.verdicts.map(({ text }) => text).join("; ")}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </section>
  );
}

/** What the whole conversation cost, and what it would have. */
function Sum({ conversation: { dollars: paid, beyond } }: { conversation: Conversation }) {
  if (!paid) return null;
  const less = saved(paid);
  return (
    <span class="right conversation-sum">
      as it came {dollars(paid[1])}{Math.abs(less) >= 0.005 && `: ${percent(Math.abs(less))} ${less > 0 ? "less" : "more"}`}
      {beyond > 0 && `, nothing of it in ${plural(beyond, "request")} after the agent would have summarised`}
    </span>
  );
}

/** Tokens at the upper edge of the picture. */
function highest({ columns, budget }: Overview): number {
  return Math.max(1, budget ?? 0, ...columns.map((column) => column.sent)) * 1.12;
}

/** Round numbers of tokens for the axis. */
function ticksOf(top: number): number[] {
  const about = top / 3;
  const unit = 10 ** Math.floor(Math.log10(about));
  const step = [1, 2, 5, 10].map((times) => times * unit).find((step) => step >= about)!;
  return [1, 2, 3].map((times) => times * step).filter((tokens) => tokens < 0.92 * top);
}

/** Where turns begin, as far as their labels have room. */
function turnLabels(columns: Column[]): { place: number; turn: number }[] {
  const labels: { place: number; turn: number }[] = [];
  columns.forEach(({ begins, turn }, place) => {
    if (begins && place - (labels.at(-1)?.place ?? -Infinity) > columns.length / 16) labels.push({ place, turn });
  });
  return labels;
}

function draw(overview: Overview) {
  const { columns } = overview;
  const top = highest(overview);
  const dearest = Math.max(...columns.map(size)) || 1;
  const bill = (column: Column, place: number) => {
    const height = (LOW * size(column)) / dearest;
    return <rect key={place} class={column.is_billed_again ? "is-again" : "plain"} x={place} width={0.85} y={LOW - height} height={height} />;
  };
  return {
    stacks: columns.map((column, place) => <Stack key={place} column={column} place={place} top={top} />),
    bills: columns.map(bill),
  };
}

function Stack({ column, place, top }: { column: Column; place: number; top: number }) {
  let y = HIGH;
  return (
    <>
      {parts.map((part) => {
        const height = (HIGH * (column.parts[part] ?? 0)) / top;
        y -= height;
        return height > 0 && <rect key={part} class={`part-${part}`} x={place} width={1.02} y={y} height={height} />;
      })}
    </>
  );
}

/** What the picture says, in words. */
function spoken({ columns, budget, cost }: Overview): string {
  const folds = columns.reduce((sum, column) => sum + column.folds, 0);
  const most = Math.max(...columns.map((column) => column.sent));
  const within = budget === null ? "" : ` of a budget of ${short(budget)}`;
  return `${plural(columns.at(-1)!.range[1], "request")}, at most ${short(most)} tokens${within}, ${plural(folds, "fold")}, ${price(cost)}. The table below has the figures.`;
}
