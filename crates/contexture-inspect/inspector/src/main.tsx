// The inspector: what the model sees, why, and what it costs.

import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Bill } from "./bill";
import { ConversationView, type News } from "./conversation";
import { Home } from "./home";
import { offline } from "./offline";
import { remote } from "./remote";
import { go, here, useRoute } from "./route";
import { Search } from "./search";
import { safe } from "./text";
import { takeToken, token } from "./token";
import type { About, Data } from "./types";
import { AboutContext, DataContext, GoneContext } from "./use";

function App({ data, about: first }: { data: Data; about: About }) {
  const route = useRoute();
  const [about, setAbout] = useState(first);
  const [news, setNews] = useState<News>({ count: 0 });
  const [isGone, setGone] = useState(false);
  // What changed since it was last read, also while the page draws: an empty name stands for everything.
  const changed = useRef(new Set<string>());
  useEffect(
    () =>
      data.follow((event, { conversation, n }) => {
        setGone(event === "gone");
        if (event === "gone") return;
        // What is gone is not asked for again.
        if (event === "forgotten" && conversation !== undefined && here().conversation === conversation) go({}, true);
        if (event === "complete") setAbout((about) => ({ ...about, is_live: false }));
        changed.current.add(conversation ?? "");
        setNews(({ count }) => ({ count: count + 1, conversation, n }));
      }),
    [],
  );
  const isOffline = about.kind === "export";
  useEffect(() => {
    if (isOffline && route.view === "home") data.conversations(0, 1).then(({ items }) => items[0] && go({ conversation: items[0].id }, true));
  }, [route.view]);
  return (
    <DataContext.Provider value={data}>
      <AboutContext.Provider value={about}>
        <GoneContext.Provider value={isGone}>
          {route.view === "home" && !isOffline && <Home route={route} changed={changed} news={news.count} />}
          {route.view === "conversation" && <ConversationView key={route.conversation} route={route} news={news} />}
          {route.view === "bill" && <Bill by={route.by} news={news.count} />}
          {route.view === "search" && <Search words={route.words} conversation={route.conversation} />}
        </GoneContext.Provider>
      </AboutContext.Provider>
    </DataContext.Provider>
  );
}

/** What to do where nothing can be shown. */
function Failed({ message }: { message: string }) {
  return (
    <main class="only">
      <div class="note" role="alert">
        <h1>{token() ? "Nothing can be shown." : "This page needs the address that was printed."}</h1>
        <p>{safe(message)}</p>
        {!token() && <p class="dim">Each start has a token of its own, which stays out of histories: run <code>contexture inspect</code> again and open the whole address, with what follows the <code>#</code>.</p>}
      </div>
    </main>
  );
}

async function start() {
  const root = document.getElementById("app")!;
  const inside = document.getElementById("data");
  takeToken();
  // A new address in a tab that is open already only changes what is behind the #.
  addEventListener("hashchange", () => takeToken() && location.reload());
  try {
    const data = inside ? await offline(inside.textContent!) : remote;
    const about = await data.about();
    render(<App data={data} about={about} />, root);
  } catch (error) {
    render(<Failed message={(error as Error).message} />, root);
  }
}

void start();
