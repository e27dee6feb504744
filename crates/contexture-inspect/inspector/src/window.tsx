// The window of a request, block by block.

import { useState } from "preact/hooks";
import { show } from "./jump";
import { List } from "./list";
import { go, here, type Route } from "./route";
import { gradeNames, kindOf, number, plural, safe, short, stateNames } from "./text";
import type { Block, Form, WindowPage } from "./types";
import { PAGE, useData, useKeys, useLoaded, usePages } from "./use";

const ROW = 46;

const forms: [Form, string, string][] = [
  ["sent", "Sent", "1"],
  ["came", "As it came", "2"],
  ["before", "Against the request before", "3"],
];

interface Props {
  id: string;
  n: number;
  route: Route;
  /** Changes when the window may be another one. */
  news: string;
}

export function Window({ id, n, route, news }: Props) {
  const data = useData();
  const { form, bySize, block } = route;
  const subject = `${id} ${n} ${form} ${bySize}`;
  // The list is the one that was loaded last, with its own order, until the one that is asked for is here: what a
  // person sees in a row is what the row opens.
  const loaded = useLoaded(
    async () => ({ subject, n, form, bySize, head: await data.window(id, n, { form, bySize, from: 0, limit: PAGE, block }) }),
    [subject, news],
  ).value;
  const head = loaded?.head;
  const pages = usePages<Block>(`${loaded?.subject} ${news}`, async (page) => {
    const { n, form, bySize } = loaded!;
    return (await data.window(id, n, { form, bySize, from: page * PAGE, limit: PAGE })).blocks;
  });
  if (head) pages.put(Math.floor(head.from / PAGE), head.blocks);
  const difference = head?.first_difference ?? null;
  const [chosen, setChosen] = useState<{ subject?: string; row: number }>({ row: -1 });
  const start = head?.at ?? (loaded?.bySize ? 0 : (difference ?? Math.max(0, (head?.total ?? 1) - 1)));
  const selected = loaded && chosen.subject === loaded.subject ? chosen.row : start;
  const to = (change: Partial<Route>) => go({ ...here(), n, block: undefined, ...change }, true);
  const choose = (row: number) => setChosen({ subject: loaded?.subject, row });
  const jump = () => difference !== null && (bySize ? to({ bySize: false }) : choose(difference));
  // Keys that are about the blocks show them.
  const seen = (act: () => void) => () => {
    act();
    show("blocks-part");
    document.getElementById("blocks")?.focus({ preventScroll: true });
  };
  useKeys({
    "1": seen(() => to({ form: "sent" })),
    "2": seen(() => to({ form: "came" })),
    "3": seen(() => to({ form: "before" })),
    o: seen(() => to({ bySize: !here().bySize })),
    d: seen(() => void jump()),
  });
  return (
    <div class="window" id="blocks-part" tabIndex={-1}>
      <div class="caption"><h2>Every block</h2></div>
      <Toolbar head={head} route={route} to={to} jump={jump} />
      {loaded && head && (
        <List
          id="blocks"
          label={`Blocks, ${forms.find(([name]) => name === loaded.form)![1].toLowerCase()}`}
          total={head.total}
          height={ROW}
          selected={selected}
          subject={`${loaded.subject} ${head.at}`}
          onSelect={choose}
          onOpen={(row) => {
            choose(row);
            const opened = pages.row(row);
            if (opened) go({ ...here(), n, block: opened.id }, route.block !== undefined);
          }}
          render={(row) => {
            const shown = pages.row(row);
            if (!shown) return <div class="block dim">…</div>;
            const isBoundary = !loaded.bySize && head.cache_boundary === row && row > 0;
            return <Line block={shown} isOpen={shown.id === block} isBoundary={isBoundary} isFirst={!loaded.bySize && row === difference} largest={head.tokens} />;
          }}
        />
      )}
    </div>
  );
}

interface ToolbarProps {
  head: WindowPage | undefined;
  route: Route;
  to: (change: Partial<Route>) => void;
  jump: () => void;
}

function Toolbar({ head, route, to, jump }: ToolbarProps) {
  const states = Object.entries(head?.states ?? {}).filter(([state]) => state !== "kept" && state !== "same");
  return (
    <div class="toolbar">
      <div class="segments" role="group" aria-label="Form">
        {forms.map(([name, label, key]) => (
          <button key={name} aria-pressed={route.form === name} title={`${label} (${key})`} onClick={() => to({ form: name })}>
            {label}
          </button>
        ))}
      </div>
      <div class="segments" role="group" aria-label="Order">
        <button aria-pressed={!route.bySize} title="In order (o)" onClick={() => to({ bySize: false })}>In order</button>
        <button aria-pressed={route.bySize} title="Largest first (o)" onClick={() => to({ bySize: true })}>By size</button>
      </div>
      <span class="states">
        {head && plural(head.total, "block")}
        {states.map(([state, count]) => (
          <span key={state} class={`state state-${state}`}>
            {number(count!)} {stateNames[state]}
          </span>
        ))}
      </span>
      {head && head.first_difference !== null && (
        <button class="quiet" title="First difference (d)" onClick={jump}>First difference</button>
      )}
    </div>
  );
}

interface LineProps {
  block: Block;
  isOpen: boolean;
  isBoundary: boolean;
  isFirst: boolean;
  largest: number;
}

function Line({ block, isOpen, isBoundary, isFirst, largest }: LineProps) {
  const { part, kind, name, made, views, state, reason, grade, tokens, preview, is_error, is_pinned } = block;
  const changed = views?.filter((view) => view.grade === "changed").length ?? 0;
  const share = largest > 0 ? Math.max(0.5, (100 * tokens) / largest) : 0;
  const quiet = state === "kept" || state === "same";
  return (
    <div class={`block block-${state}${isOpen ? " open" : ""}${isFirst ? " difference" : ""}`}>
      {isBoundary && <span class="boundary">the provider’s cache ends here</span>}
      <i class={`edge part-${part}`} />
      <div class="what">
        <span class="source">{kindOf({ kind, part, made })}</span>
        {name && <bdi class="name">{safe(name)}</bdi>}
        {is_error && <span class="tag bad">failed</span>}
        {is_pinned && <span class="tag">pinned</span>}
        {grade && grade !== "seen" && <span class={`tag grade-${grade}`}>{gradeNames[grade]}</span>}
        {changed > 0 && <span class="tag grade-changed">{changed} of {views!.length} from before a change</span>}
        {!quiet && <span class={`state state-${state}`} title={reason}>{stateNames[state]}</span>}
      </div>
      <bdi class="preview">{preview === "…" || preview === "" ? "empty" : safe(preview)}</bdi>
      <div class="size">
        <b>{short(tokens)}</b>
        <svg class="share" aria-hidden="true"><rect class={`part-${part}`} width={`${share}%`} height="100%" /></svg>
      </div>
    </div>
  );
}
