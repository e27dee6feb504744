// One conversation: its requests on the left, one of them on the right.

import { useEffect, useRef, useState } from "preact/hooks";
import { BlockView } from "./block";
import { Files } from "./files";
import { titleOf } from "./home";
import { Requests } from "./requests";
import { go, here, type Route } from "./route";
import { show } from "./jump";
import { Mark } from "./mark";
import { COLUMNS, OverviewView } from "./overview";
import { Answer, CostView, FilesShown, FoldView, Happened, Parts, Sentence, Signals } from "./story";
import { number, plural, safe } from "./text";
import { Top } from "./top";
import { Tools } from "./tools";
import type { Block, Conversation, Form, Overview, RequestLine, Story } from "./types";
import { useAbout, useData, useKeys, useLoaded } from "./use";
import { Window } from "./window";

export interface News {
  count: number;
  conversation?: string;
  n?: number;
}

export function ConversationView({ route, news }: { route: Route; news: News }) {
  const id = route.conversation!;
  const data = useData();
  const about = useAbout();
  const [pinned, setPinned] = useState(0);
  const own = news.conversation === id || news.conversation === undefined;
  const seen = useRef(0);
  if (own) seen.current = news.count;
  const conversation = useLoaded(() => data.conversation(id), [id, seen.current]);
  const total = conversation.value?.id === id ? conversation.value.requests : 0;
  const [follows, setFollows] = useState(false);
  // What was newest when the conversation was opened stays until the person goes on: nothing jumps.
  const opened = useRef<number | undefined>(undefined);
  const isRead = conversation.value !== undefined && !conversation.value.is_unread && !conversation.value.is_reading;
  if (opened.current === undefined && total > 0 && isRead) opened.current = total;
  const n = follows && total > 0 ? total : (route.n ?? opened.current);
  const line = useLoaded<RequestLine | undefined>(
    async () => (n ? (await data.requests(id, n, 1)).items[0] : undefined),
    [id, n, news.n === n ? seen.current : 0],
  );
  const current = line.value?.n === n ? line.value : undefined;
  const newest = news.n === n || news.n === (n ?? 0) + 1 ? seen.current : 0;
  const story = useLoaded<Story | undefined>(async () => (n ? data.story(id, n) : undefined), [id, n, newest]);
  const overview = useLoaded<Overview | undefined>(async () => (total > 0 ? data.overview(id, COLUMNS) : undefined), [id, total]);
  // Shown together at first: a part that came later would push away what is read or clicked below it.
  const isWhole = overview.value !== undefined || overview.error !== undefined;
  const shown = useShown(id, current, route, pinned);
  const to = (change: Partial<Route>, replace = true) => {
    setFollows(false);
    go({ ...here(), n, block: undefined, path: undefined, ...change }, replace);
  };
  const step = (by: number) => n !== undefined && total > 0 && to({ n: Math.min(total, Math.max(1, n + by)) });
  useKeys({
    "]": () => step(1),
    "[": () => step(-1),
    n: () => step(1),
    b: () => step(-1),
    e: () => void nextEvent(),
    a: () => to({ isAll: !here().isAll, block: route.block }),
    w: () => to({ tab: "window" }),
    Escape: () => (route.block !== undefined ? close() : go({})),
    p: () => document.getElementById("pin")?.click(),
  });
  const close = () => {
    to({ block: undefined, path: route.path });
    document.getElementById("blocks")?.focus();
  };
  const nextEvent = async () => {
    const events = await data.events(id);
    const next = events.find(({ verdict, range }) => verdict && range[0] > (n ?? 0));
    if (next) to({ n: next.range[0], tab: "window" });
  };
  useEffect(() => {
    document.title = n === undefined ? "Contexture" : `Request ${n} · Contexture`;
  }, [n]);
  const form = (form: Form) => {
    to({ form, bySize: false });
    show("blocks-part");
  };
  const parts = (story: Story) => ({
    story,
    conversation: conversation.value!,
    onBlock: (block: number, form: Form = "sent") => to({ block, form }, route.block !== undefined),
    onRequest: (n: number) => to({ n }, false),
    onForm: form,
    onFile: (path: string) => to({ tab: "files" as const, path }, false),
  });
  if (conversation.error) return <><Top /><p class="note bad">{conversation.error}</p></>;
  if (!conversation.value || conversation.value.id !== id) return <Top />;
  const isLive = about.is_live;
  const lines = conversation.value;
  return (
    <>
      <Top actions={<Actions conversation={lines} onChanged={() => setPinned(pinned + 1)} isFollowing={follows} onFollow={isLive ? () => setFollows(!follows) : undefined} />}>
        {about.kind !== "export" && <a class="all" href="#/">all sessions ›</a>}
        <h1><bdi>{titleOf(lines)}</bdi></h1>
        {lines.simulated > 0 && <Mark model={lines.model} />}
      </Top>
      <main class={`columns${route.n ? " has-request" : ""}${route.block !== undefined ? " has-block" : ""}`}>
        <nav class="side" aria-label="Requests">
          <div class="side-head">
            <p class="heading">{plural(lines.requests, "request")} · {plural(lines.turns, "turn")} · {plural(lines.folds, "fold")}</p>
            <p class="small dim">{route.isAll ? "all requests" : "what happened"} · <button class="link" title="(a)" onClick={() => to({ isAll: !route.isAll, block: route.block })}>{route.isAll ? "show what happened" : "show all"}</button></p>
            {(lines.agent || lines.project) && <p class="small dim"><bdi>{safe([lines.agent, lines.project].filter(Boolean).join(" · "))}</bdi></p>}
            {lines.stopped && <p class="small dim">{safe(lines.stopped)}</p>}
          </div>
          <Requests conversation={lines} n={n} isAll={route.isAll} news={own ? news : { count: seen.current }} onSelect={(n) => to({ n })} onOpen={(n) => to({ n }, route.n !== undefined)} />
        </nav>
        <section class="main" aria-label="Request">
          <div class="tabs" role="group" aria-label="What is shown">
            <button class="back" onClick={() => to({ n: undefined })}>← requests</button>
            {(["window", "files", "tools"] as const).map((tab) => (
              <button key={tab} aria-pressed={route.tab === tab} onClick={() => to({ tab })}>
                {{ window: "Request", files: "Files", tools: "Tools" }[tab]}
              </button>
            ))}
            {n !== undefined && n < total && !follows && isLive && opened.current !== undefined && total > opened.current && (
              <button class="newer" aria-label={plural(total - n, "newer request")} onClick={() => to({ n: total, tab: "window" })}>{number(total - n)} newer</button>
            )}
          </div>
          {route.tab === "files" && (
            <Files id={id} path={route.path} total={total} onPath={(path) => to({ path, tab: "files" }, false)} onBlock={(n, block) => to({ n, block, form: "came", tab: "window" }, false)} />
          )}
          {route.tab === "tools" && <Tools id={id} total={total} onBlock={(n, block) => to({ n, block, form: "came", tab: "window" }, false)} />}
          {route.tab === "window" && !isRead && (
            <p class="note">Reading the recording{total > 0 && `: ${plural(total, "request")} so far`} …</p>
          )}
          {route.tab === "window" && n !== undefined && isRead && story.value && isWhole && (
            <div class="page" key={id} data-request={story.value.line.n}>
              <Sentence {...parts(story.value)} />
              <OverviewView conversation={lines} overview={overview.value} n={n} onRequest={(n) => to({ n }, false)} />
              <Parts {...parts(story.value)} />
              <FilesShown {...parts(story.value)} />
              <FoldView {...parts(story.value)} />
              <div class="pair">
                <Answer {...parts(story.value)} />
                <CostView {...parts(story.value)} />
              </div>
              <Signals {...parts(story.value)} />
              <Happened {...parts(story.value)} />
              <Window id={id} n={n} route={route} news={`${pinned} ${newest}`} />
            </div>
          )}
          {story.error && <p class="note bad">{story.error}</p>}
          {line.error && <p class="note bad">{line.error}</p>}
        </section>
        {route.block !== undefined && route.tab === "window" && (
          <BlockView conversation={id} id={route.block} shown={shown} onClose={close} onRequest={(n) => to({ n, block: route.block, form: route.form === "before" ? "sent" : route.form })} onFile={(path) => to({ tab: "files", path }, false)} onChanged={() => setPinned(pinned + 1)} />
        )}
      </main>
    </>
  );
}

/** What the window says of the block that is open. */
function useShown(id: string, line: RequestLine | undefined, route: Route, news: number): Block | undefined {
  const data = useData();
  const { block, form } = route;
  const page = useLoaded(
    async () => (line && block !== undefined ? data.window(id, line.n, { form, bySize: false, from: 0, limit: 20, block }) : undefined),
    [id, line?.n, block, form, news],
  );
  return page.value?.blocks.find((shown) => shown.id === block);
}

interface ActionsProps {
  conversation: Conversation;
  onChanged: () => void;
  isFollowing: boolean;
  onFollow?: () => void;
}

/** What can be done with a conversation. */
function Actions({ conversation, onChanged, isFollowing, onFollow }: ActionsProps) {
  const data = useData();
  const about = useAbout();
  const dialog = useRef<HTMLDialogElement>(null);
  const [error, setError] = useState("");
  useEffect(() => setError(""), [conversation.id]);
  const { id, stopped } = conversation;
  const act = async (work: Promise<void>, then: () => void) => {
    try {
      await work;
      then();
    } catch (error) {
      setError((error as Error).message);
    }
  };
  const save = async () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await data.exported(id));
    link.download = `contexture-${id.replace(/[^\w-]/g, "_")}.html`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  };
  return (
    <div class="actions">
      {error && <span class="bad" role="alert">{error}</span>}
      {onFollow && <button aria-pressed={isFollowing} onClick={onFollow}>Follow</button>}
      {about.can_act && (
        <button aria-pressed={stopped !== undefined} title={stopped} onClick={() => act(data.folding(id, stopped !== undefined), onChanged)}>No new folds</button>
      )}
      {about.can_forget && <button onClick={() => dialog.current?.showModal()}>Forget…</button>}
      {data.canExport && <button onClick={() => act(save(), () => {})}>Export</button>}
      <dialog ref={dialog} aria-label="Forget this conversation">
        <p>Forget this conversation? Its windows, decisions and receipts are deleted from this machine. The agent’s own history stays.</p>
        <form method="dialog">
          <button onClick={() => act(data.forget(id), () => go({}))}>Forget it</button>
          <button>Keep it</button>
        </form>
      </dialog>
    </div>
  );
}
