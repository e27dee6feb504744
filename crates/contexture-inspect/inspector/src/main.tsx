// The inspector: what the model sees, why, and what it costs.

import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Hatch } from "./bar";
import { Bill } from "./bill";
import { ConversationView, type News } from "./conversation";
import { Conversations } from "./conversations";
import { offline } from "./offline";
import { remote } from "./remote";
import { address, go, here, useRoute } from "./route";
import { Search } from "./search";
import { safe } from "./text";
import { takeToken } from "./token";
import type { About, Data } from "./types";
import { AboutContext, DataContext, useKeys } from "./use";

function App({ data, about: first }: { data: Data; about: About }) {
  const route = useRoute();
  const [about, setAbout] = useState(first);
  const [news, setNews] = useState<News>({ count: 0 });
  const [isGone, setGone] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  const help = useRef<HTMLDialogElement>(null);
  useEffect(
    () =>
      data.follow((event, { conversation, n }) => {
        setGone(event === "gone");
        if (event === "gone") return;
        // What is gone is not asked for again.
        if (event === "forgotten" && conversation !== undefined && here().conversation === conversation) go({}, true);
        if (event === "complete") setAbout((about) => ({ ...about, is_live: false }));
        setNews(({ count }) => ({ count: count + 1, conversation, n }));
      }),
    [],
  );
  useKeys({
    "/": () => field.current?.focus(),
    "?": () => help.current?.showModal(),
    c: () => go({}),
    $: () => go({ view: "bill" }),
  });
  const search = (event: Event) => {
    event.preventDefault();
    const words = field.current?.value.trim() ?? "";
    if (words.length > 1) go({ view: "search", words });
  };
  const isOffline = about.kind === "export";
  useEffect(() => {
    if (isOffline && route.view === "conversations") data.conversations(0, 1).then(({ items }) => items[0] && go({ conversation: items[0].id }, true));
  }, [route.view]);
  return (
    <DataContext.Provider value={data}>
      <AboutContext.Provider value={about}>
        <Hatch />
        <header class="top">
          <a class="brand" href="#/" aria-label="Contexture, all conversations">
            <i class="mark" aria-hidden="true" /> Contexture
          </a>
          <span class="about dim">
            {about.is_live && !isGone && <i class="live" role="img" aria-label="live" />}
            <bdi>{safe(about.name)}</bdi>
            <span role="status">{isGone && " has ended"}</span>
          </span>
          {!isOffline && (
            <a class="tab" href={address({ view: "bill" })} aria-current={route.view === "bill" ? "page" : undefined}>Bill</a>
          )}
          <form role="search" onSubmit={search}>
            <input ref={field} type="search" placeholder="Search all blocks  /" aria-label="Search all blocks" defaultValue={route.words} />
          </form>
          <button class="help" aria-label="Keys" title="Keys (?)" onClick={() => help.current?.showModal()}>?</button>
        </header>
        {route.view === "conversations" && !isOffline && (
          <main class="only">
            <h1 class="unseen">Conversations</h1>
            {about.note && <p class="note dim">{safe(about.note)}</p>}
            <Conversations news={news.count} />
          </main>
        )}
        {route.view === "conversation" && <ConversationView key={route.conversation} route={route} news={news} />}
        {route.view === "bill" && <main class="only"><Bill by={route.by} news={news.count} /></main>}
        {route.view === "search" && <main class="only"><Search words={route.words} conversation={route.conversation} /></main>}
        <dialog ref={help} aria-label="Keys" class="keys">
          <h2>Keys</h2>
          <dl>
            {keys.map(([key, does]) => (
              <div key={key}>
                <dt>{key!.split(" ").map((key) => <kbd key={key}>{key}</kbd>)}</dt>
                <dd>{does}</dd>
              </div>
            ))}
          </dl>
          <form method="dialog"><button>Close</button></form>
        </dialog>
      </AboutContext.Provider>
    </DataContext.Provider>
  );
}

const keys = [
  ["↑ ↓ j k", "move in a list"],
  ["Enter", "open"],
  ["Esc", "close, or go back"],
  ["1 2 3", "sent, as it came, against the request before"],
  ["f", "the next of the three forms"],
  ["d", "first difference"],
  ["o", "in order or by size"],
  ["[ ]", "request before, next request"],
  ["e", "next request in which something happened"],
  ["p", "pin the open block"],
  ["/", "search"],
  ["c $", "conversations, bill"],
];

function Failed({ message }: { message: string }) {
  return (
    <main class="only">
      <p class="note bad" role="alert">{message}</p>
    </main>
  );
}

async function start() {
  const root = document.getElementById("app")!;
  const inside = document.getElementById("data");
  takeToken();
  // A new address in a tab that is open already only changes what is behind the #.
  addEventListener("hashchange", () => takeToken() && location.reload());
  const data = inside ? offline(inside.textContent!) : remote;
  try {
    const about = await data.about();
    render(<App data={data} about={about} />, root);
  } catch (error) {
    render(<Failed message={(error as Error).message} />, root);
  }
}

void start();
