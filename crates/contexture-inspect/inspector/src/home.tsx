// All sessions: what they cost together, and each of them.

import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Mark } from "./mark";
import { address, go, here, type Route } from "./route";
import { dollars, number, percent, plural, safe, saved, short, when } from "./text";
import { Top } from "./top";
import type { Conversation } from "./types";
import { useAbout, useData, useKeys } from "./use";

/** Rows that are shown at first. */
const FEW = 200;
/** Columns of the picture, and chips. */
const MOST_COLUMNS = 300;
const MOST_CHIPS = 6;
/** How long changes are gathered before they are read. */
const PAUSE_MS = 300;
/** Sessions that are read one by one; if more changed, all are. */
const MOST_SINGLE = 20;
const PAGE = 500;

export type Changed = RefObject<Set<string>>;

export function titleOf(conversation: Conversation): string {
  return safe(conversation.title || conversation.name || conversation.id);
}

/** All sessions, newest first. What changes is read again, some at a time. */
function useSessions(changed: Changed, news: number): { sessions?: Conversation[]; error?: string } {
  const data = useData();
  const [sessions, setSessions] = useState<Conversation[]>();
  const [error, setError] = useState<string>();
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const readAll = async () => {
    const all: Conversation[] = [];
    for (let from: number | undefined = 0; from !== undefined; ) {
      const page = await data.conversations(from, PAGE);
      all.push(...page.items);
      from = page.next;
    }
    setSessions(all);
  };
  const read = async () => {
    timer.current = undefined;
    const ids = [...changed.current!];
    changed.current!.clear();
    if (ids.length > MOST_SINGLE || ids.includes("")) return readAll();
    const lines = await Promise.all(ids.map((id) => data.conversation(id).catch(() => undefined)));
    setSessions((before = []) => {
      const fresh = new Map(ids.map((id, at) => [id, lines[at]]));
      const known = new Set(before.map(({ id }) => id));
      const kept = before.flatMap((line) => (fresh.has(line.id) ? (fresh.get(line.id) ?? []) : line));
      return [...lines.filter((line) => line && !known.has(line.id)).map((line) => line!), ...kept];
    });
  };
  useLayoutEffect(() => void readAll().catch((error: Error) => setError(error.message)), []);
  useEffect(() => {
    if (changed.current!.size > 0) timer.current ??= setTimeout(() => void read().catch(() => {}), PAUSE_MS);
  }, [news]);
  useEffect(() => () => clearTimeout(timer.current), []);
  return { sessions, error };
}

const sorts: Record<string, (line: Conversation) => number | string> = {
  session: (line) => titleOf(line).toLowerCase(),
  folds: (line) => line.folds,
  largest: (line) => line.largest,
  paid: (line) => line.dollars?.[0] ?? 0,
  came: (line) => line.dollars?.[1] ?? 0,
  saved: (line) => (line.dollars ? saved(line.dollars) : 0),
};

/** What sorts a table, and whether the smallest comes first. Dates are in order already. */
function order(sort: string): [string, boolean] {
  const name = sort.replace("-", "");
  return [name, (name === "session") !== sort.startsWith("-")];
}

function sorted(lines: Conversation[], sort: string): Conversation[] {
  const [name, isUp] = order(sort);
  const by = sorts[name];
  if (!by) return isUp ? [...lines].reverse() : lines;
  const way = isUp ? 1 : -1;
  return [...lines].sort((one, other) => (by(one) < by(other) ? -way : by(one) > by(other) ? way : 0));
}

function sum(lines: Conversation[]): [number, number] {
  const priced = lines.flatMap(({ dollars, is_reading }) => (dollars && !is_reading ? [dollars] : []));
  return [priced.reduce((sum, [paid]) => sum + paid, 0), priced.reduce((sum, [, through]) => sum + through, 0)];
}

export function Home({ route, changed, news }: { route: Route; changed: Changed; news: number }) {
  const about = useAbout();
  const { sessions, error } = useSessions(changed, news);
  const filter = useRef<HTMLInputElement>(null);
  const { project, words, sort } = route;
  const [isAll, setAll] = useState(false);
  const found = useMemo(() => {
    const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
    const has = (line: Conversation) => {
      const text = [line.title, line.name, line.agent, line.project, line.model].join(" ").toLowerCase();
      return (project === undefined || (line.project ?? "") === project) && wanted.every((word) => text.includes(word));
    };
    return sorted((sessions ?? []).filter(has), sort);
  }, [sessions, project, words, sort]);
  const step = (by: number) => {
    const rows = [...document.querySelectorAll<HTMLElement>("#sessions tbody a")];
    const at = rows.indexOf(document.activeElement as HTMLElement);
    rows[Math.min(rows.length - 1, Math.max(0, at < 0 ? 0 : at + by))]?.focus();
  };
  useKeys({ f: () => filter.current?.focus(), j: () => step(1), k: () => step(-1), ArrowDown: () => step(1), ArrowUp: () => step(-1) });
  useEffect(() => {
    document.title = "Contexture";
  }, []);
  const isThere = sessions !== undefined && sessions.length > 0;
  // Keys work from the first one on, unless the person is somewhere else already.
  useEffect(() => {
    if (isThere && (document.activeElement === null || document.activeElement === document.body)) step(0);
  }, [isThere]);
  const to = (change: Partial<Route>) => go({ ...here(), ...change }, true);
  const shown = isAll ? found : found.slice(0, FEW);
  return (
    <>
      <Top />
      <main class="home">
        {error && <p class="note bad">{error}</p>}
        {about.note && <p class="dim">{safe(about.note)}</p>}
        {sessions?.length === 0 && (
          <div class="note">
            <h1>{about.is_live ? "No request has come yet." : "There is no session here."}</h1>
            {about.is_live && <p class="dim">This page fills by itself as soon as the agent asks its model something.</p>}
          </div>
        )}
        {isThere && (
          <>
            <Headline lines={found} />
            <div class="chips">
              <Chips sessions={sessions!} project={project} onProject={(project) => to({ project })} />
              <input ref={filter} type="search" placeholder="filter…  f" aria-label="Filter the sessions" value={words} onInput={(event) => to({ words: event.currentTarget.value })} />
            </div>
            <Columns lines={found} />
            <Table lines={shown} sort={sort} onSort={(sort) => to({ sort })} />
            {found.length === 0 && <p class="note">No session fits. <button class="link" onClick={() => to({ words: "", project: undefined })}>Show all {sessions!.length}</button></p>}
            {found.length > shown.length && <button onClick={() => setAll(true)}>Show all {number(found.length)}</button>}
          </>
        )}
      </main>
    </>
  );
}

/** The sum, in one sentence. */
function Headline({ lines }: { lines: Conversation[] }) {
  const data = useData();
  const [paid, through] = sum(lines);
  const read = lines.filter((line) => !line.is_unread && !line.is_reading);
  const isSimulated = lines.some(({ simulated }) => simulated > 0);
  const less = saved([paid, through]);
  const unread = lines.length - read.length;
  const count = (pick: (line: Conversation) => number) => read.reduce((sum, line) => sum + pick(line), 0);
  const beyond = count((line) => line.beyond);
  const unpriced = read.filter((line) => !line.dollars && line.requests > 0).length;
  const change = Math.abs(less) < 0.005 ? "the same" : `${percent(Math.abs(less))} ${less > 0 ? "less" : "more"}`;
  return (
    <div class="headline">
      <h1>
        {paid === 0 ? (
          plural(lines.length, "session")
        ) : isSimulated ? (
          <>{plural(read.length, "session")} would have cost {dollars(through)}. With Contexture: <b class={less > 0 ? "accent" : ""}>{dollars(paid)}, {change}.</b></>
        ) : (
          <>{plural(read.length, "session")} cost <b class={less > 0 ? "accent" : ""}>{dollars(paid)}</b>. As they came: {dollars(through)}, so this is <b class={less > 0 ? "accent" : ""}>{change}.</b></>
        )}
      </h1>
      <div class="dim">
        {isSimulated && <Mark model={models(lines)} />}{" "}
        {unread > 0 && (
          <span role="status">
            {number(read.length)} of {number(lines.length)} read so far{" "}
            {lines.some(({ is_unread }) => is_unread) && <button class="link" onClick={() => void data.openAll()}>read all</button>}{" · "}
          </span>
        )}
        {beyond > 0 && `nothing counts as saved of ${number(beyond)} of ${plural(count((line) => line.requests), "request")}, which came after the agents would have summarised · `}
        {unpriced > 0 && `${plural(unpriced, "session")} without known prices · `}
        <details class="known">
          <summary>how this is known</summary>
          <p>
            {isSimulated
              ? "A recording has no bill. Each request is sent to a simulated provider, once as Contexture sends it and once as it came, at the prices of the model that the recording names. "
              : "What was paid is what the provider reported. What the same requests would have cost as they came is estimated from what was found in its cache. "}
            Where an agent would have summarised its conversation because the model takes no more, nothing counts as saved.
          </p>
        </details>
      </div>
    </div>
  );
}

/** The models of some sessions, if they are few. */
function models(lines: Conversation[]): string {
  const names = new Set(lines.filter(({ is_unread }) => !is_unread).map(({ model }) => model).filter(Boolean));
  return names.size === 1 ? [...names][0]! : names.size > 1 ? `${names.size} models` : "";
}

function Chips({ sessions, project, onProject }: { sessions: Conversation[]; project?: string; onProject: (project?: string) => void }) {
  const projects = new Map<string, Conversation[]>();
  for (const line of sessions) projects.set(line.project ?? "", [...(projects.get(line.project ?? "") ?? []), line]);
  const most = [...projects].sort(([, one], [, other]) => sum(other)[1] - sum(one)[1] || other.length - one.length);
  const shown = most.slice(0, MOST_CHIPS);
  if (project !== undefined && !shown.some(([name]) => name === project)) shown.push([project, projects.get(project) ?? []]);
  return (
    <div role="group" aria-label="Projects">
      <button class="chip" aria-pressed={project === undefined} onClick={() => onProject(undefined)}>all <span>{sessions.length}</span></button>
      {projects.size > 1 && shown.map(([name, lines]) => (
        <button key={name} class="chip" aria-pressed={project === name} onClick={() => onProject(project === name ? undefined : name)}>
          <bdi>{safe(name) || "no project"}</bdi> <span>{lines.length}{sum(lines)[0] > 0 && ` · ${dollars(sum(lines)[0])}`}</span>
        </button>
      ))}
      {most.length > shown.length && <span class="dim small">and {plural(most.length - shown.length, "more project")}</span>}
    </div>
  );
}

/** One column a session, the dearest first. */
function Columns({ lines }: { lines: Conversation[] }) {
  const dearest = lines.filter(({ dollars, is_reading }) => dollars && !is_reading).sort((one, other) => other.dollars![1] - one.dollars![1]).slice(0, MOST_COLUMNS);
  if (dearest.length < 2) return null;
  const most = Math.max(...dearest.flatMap(({ dollars }) => dollars!));
  const at = (event: MouseEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    return dearest[Math.floor(((event.clientX - box.left) / box.width) * dearest.length)];
  };
  return (
    <figure class="columns-picture" style={{ maxWidth: `${dearest.length * 40}px` }}>
      <svg viewBox={`0 0 ${dearest.length} 100`} preserveAspectRatio="none" role="img" aria-label={`${plural(dearest.length, "session")} by cost, from ${dollars(dearest[0]!.dollars![1])} down. The table has the figures.`}
        onClick={(event) => { const line = at(event); if (line) go({ view: "conversation", conversation: line.id }); }}>
        {dearest.map((line, place) => {
          const [paid, through] = line.dollars!.map((sum) => (100 * sum) / most) as [number, number];
          return (
            <g key={line.id}>
              <title>{`${titleOf(line)}: ${dollars(line.dollars![0])} instead of ${dollars(line.dollars![1])}`}</title>
              <rect class="through" x={place + 0.12} width={0.76} y={100 - Math.max(paid, through)} height={Math.max(paid, through)} />
              <rect class={paid > through ? "paid is-more" : "paid"} x={place + 0.12} width={0.76} y={100 - paid} height={paid} />
            </g>
          );
        })}
      </svg>
      <figcaption class="dim small">one column a session: <i class="dot is-paid" />paid <i class="dot is-through" />as it came</figcaption>
    </figure>
  );
}

const headings: [string, string, string][] = [
  ["folds", "folds", "wide"],
  ["largest", "largest", "wide"],
  ["", "", "wide"],
  ["paid", "paid", ""],
  ["came", "as it came", ""],
  ["saved", "saved", ""],
];

function Table({ lines, sort, onSort }: { lines: Conversation[]; sort: string; onSort: (sort: string) => void }) {
  const most = Math.max(0.0001, ...lines.flatMap(({ dollars }) => dollars ?? []));
  const [sortedBy, isUp] = order(sort);
  const heading = (name: string, label: string) => {
    const isBy = sortedBy === name;
    return <button class="sort" onClick={() => onSort(isBy && !sort.startsWith("-") ? `-${name}` : name)}>{label}{isBy && <i aria-hidden="true">{isUp ? " ▴" : " ▾"}</i>}</button>;
  };
  const way = (name: string) => (sortedBy === name ? (isUp ? "ascending" : "descending") : undefined);
  return (
    <table class="sessions" id="sessions">
      <caption class="unseen">Sessions</caption>
      <thead>
        <tr>
          <th scope="col" class="wide">window over time</th>
          <th scope="col" aria-sort={way("session")}>{heading("session", "session")}</th>
          <th scope="col" class="wide" aria-sort={way("date")}>{heading("date", "date")}</th>
          {headings.map(([name, label, kind]) =>
            name ? <th key={name} scope="col" aria-sort={way(name)} class={`right ${kind}`}>{heading(name, label)}</th> : <td key="picture" class={kind} />,
          )}
        </tr>
      </thead>
      <tbody>
        {lines.map((line) => <Row key={line.id} line={line} most={most} />)}
      </tbody>
    </table>
  );
}

function Row({ line, most }: { line: Conversation; most: number }) {
  const { id, requests, turns, folds, failed, largest, model, last_ms, is_reading, is_unread, name, parent, agent, project, shape } = line;
  const paid = is_reading ? null : line.dollars;
  const facts = [project, agent, !is_unread && plural(turns, "turn"), !is_unread && plural(requests, "request"), !agent && !project && (name !== line.title ? name : model)];
  const width = (sum: number) => `${(100 * sum) / most}%`;
  return (
    <tr>
      <td class="wide"><Shape shape={shape ?? []} /></td>
      <td>
        <a href={address({ view: "conversation", conversation: id })}><bdi>{titleOf(line)}</bdi></a>
        <span class="dim small">
          {parent && "branch · "}<bdi>{safe(facts.filter(Boolean).join(" · "))}</bdi>{failed > 0 && <span class="bad"> · {failed} failed</span>}
        </span>
      </td>
      <td class="wide dim nowrap">{when(last_ms)}</td>
      <td class="right wide">{folds > 0 && folds}</td>
      <td class="right wide">{largest > 0 && short(largest)}</td>
      <td class="wide">
        {paid && (
          <svg class="cost-bar" aria-hidden="true"><rect class="through" width={width(Math.max(...paid))} height="100%" /><rect class={paid[0] > paid[1] ? "paid is-more" : "paid"} width={width(paid[0])} height="100%" /></svg>
        )}
      </td>
      <td class="right strong">{is_reading ? <span class="dim">reading…</span> : paid && dollars(paid[0])}</td>
      <td class="right dim">{paid && dollars(paid[1])}</td>
      <td class="right">{paid && percent(saved(paid))}</td>
    </tr>
  );
}

/** How large the requests of a session were, as a small picture. */
function Shape({ shape }: { shape: number[] }) {
  const most = Math.max(1, ...shape);
  return (
    <svg class="shape" viewBox="0 0 24 10" preserveAspectRatio="none" aria-hidden="true">
      {shape.map((tokens, at) => <rect key={at} x={(24 * at) / shape.length} width={(24 / shape.length) * 0.88} y={10 - (10 * tokens) / most} height={(10 * tokens) / most} />)}
    </svg>
  );
}
