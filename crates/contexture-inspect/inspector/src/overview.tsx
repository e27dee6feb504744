// The whole conversation as a picture: what was sent, by source, and what was billed beneath.

import { useMemo, useState } from "preact/hooks";
import { Mark } from "./mark";
import { address } from "./route";
import { number, plural, short, sourceNames, sourceOrder } from "./text";
import type { Column, Conversation, Overview } from "./types";

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

export function OverviewView({ conversation, overview, n, onRequest }: Props) {
  const [pointed, setPointed] = useState<Column | undefined>();
  // Drawn once: another request of the same conversation moves only the frame around it.
  const drawn = useMemo(() => overview && draw(overview), [overview]);
  if (!overview || overview.columns.length === 0) return null;
  const { columns, budget } = overview;
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
  const last = columns.at(-1)!.range[1];
  const limit = (columns[chosen] ?? columns.at(-1)!).budget;
  const says = pointed ?? (chosen < 0 ? undefined : columns[chosen]);
  return (
    <section class="overview" id="overview" tabIndex={-1} aria-label="The whole conversation">
      <div class="caption">
        <h3>The whole conversation</h3>
        <span class="dim">
          what was sent, by source{columns.some(({ folds }) => folds > 0) && ", ▼ folds"}{limit !== undefined && `, line: the budget, ${short(limit)} here`}
        </span>
        <span class="right dim">request 1 … {last}</span>
      </div>
      <div class="graph">
        <div class="folds" aria-hidden="true">
          {columns.map((column, place) => column.folds > 0 && <i key={place} style={{ left: `${(100 * (place + 0.5)) / columns.length}%` }} />)}
        </div>
        <svg class="stack" viewBox={`0 0 ${columns.length} ${HIGH}`} preserveAspectRatio="none" role="img" aria-label={spoken(overview)} {...handlers}>
          {drawn?.stacks}
          {budget !== null && <polyline class="budget" points={columns.map((column, place) => budgetAt(column, place, top)).join(" ")} />}
          {chosen >= 0 && <rect class="chosen" x={chosen} width={1} y={0} height={HIGH} />}
        </svg>
        <div class="turns" aria-hidden="true">
          {columns.map((column, place) => column.begins && (
            <i key={place} style={{ left: `${(100 * place) / columns.length}%` }}>{column.turn}</i>
          ))}
        </div>
        <svg class="bills" viewBox={`0 0 ${columns.length} ${LOW}`} preserveAspectRatio="none" aria-hidden="true" {...handlers}>
          {drawn?.bills}
        </svg>
      </div>
      <div class="caption">
        <span>
          {says ? (
            <>
              <a href={address({ conversation: conversation.id, n: says.n })}>request {says.n}</a>: {short(says.sent)} sent, {number(says.billed)} billed
              {says.verdicts[0] && `, ${says.verdicts[0].text}`}
            </>
          ) : (
            "billed for each request; red: more than three times the usual"
          )}
        </span>
        <span class="right dim">{conversation.simulated > 0 && <Mark origin="simulated" />}</span>
      </div>
      <details class="behind-picture">
        <summary>As a table</summary>
        <div class="scroll">
          <table>
            <caption>What was sent and billed{columns.some(({ range }) => range[0] !== range[1]) && ", the dearest of some requests each"}</caption>
            <thead>
              <tr>
                <th scope="col">request</th>
                <th scope="col" class="right">turn</th>
                <th scope="col" class="right">sent</th>
                {sourceOrder.map((source) => <th key={source} scope="col" class="right">{sourceNames[source]}</th>)}
                <th scope="col" class="right">billed</th>
                <th scope="col">what happened</th>
              </tr>
            </thead>
            <tbody>
              {columns.map((column) => (
                <tr key={column.n}>
                  <td><a href={address({ conversation: conversation.id, n: column.n })}>{column.n}</a></td>
                  <td class="right">{column.turn}</td>
                  <td class="right">{number(column.sent)}</td>
                  {sourceOrder.map((source) => <td key={source} class="right">{number(column.sources[source] ?? 0)}</td>)}
                  <td class="right">{number(column.billed)}</td>
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

/** Tokens at the upper edge of the picture. */
function highest({ columns, budget }: Overview): number {
  return Math.max(1, budget ?? 0, ...columns.map((column) => column.sent)) * 1.06;
}

/** The budget over one column: it follows how the provider counts tokens, so it is not the same everywhere. */
function budgetAt({ budget }: Column, place: number, top: number): string {
  const y = HIGH * (1 - (budget ?? 0) / top);
  return `${place},${y} ${place + 1},${y}`;
}

function draw(overview: Overview) {
  const { columns, usual } = overview;
  const top = highest(overview);
  const dearest = Math.max(1, ...columns.map((column) => column.billed));
  const bill = (column: Column, place: number) => {
    const height = (LOW * column.billed) / dearest;
    return <rect key={place} class={column.billed > 3 * usual ? "dear" : "plain"} x={place} width={0.85} y={LOW - height} height={height} />;
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
      {sourceOrder.map((source) => {
        const height = (HIGH * (column.sources[source] ?? 0)) / top;
        y -= height;
        return height > 0 && <rect key={source} class={`fill-${source}`} x={place} width={1.02} y={y} height={height} />;
      })}
    </>
  );
}

/** What the picture says, in words. */
function spoken({ columns, budget, dear }: Overview): string {
  const folds = columns.reduce((sum, column) => sum + column.folds, 0);
  const most = Math.max(...columns.map((column) => column.sent));
  const within = budget === null ? "" : ` of a budget of ${short(budget)}`;
  return `${plural(columns.at(-1)!.range[1], "request")}, at most ${short(most)} tokens${within}, ${plural(folds, "fold")}, ${plural(dear, "dear request")}. The table below has the figures.`;
}
