// The bar over every view: what is looked at, and the search.

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { address, go, useRoute } from "./route";
import { safe } from "./text";
import { useAbout, useKeys, useServerGone } from "./use";

interface Props {
  /** What is looked at: names with a way back. */
  children?: ComponentChildren;
  /** What can be done with it. */
  actions?: ComponentChildren;
}

export function Top({ children, actions }: Props) {
  const about = useAbout();
  const isGone = useServerGone();
  const route = useRoute();
  const field = useRef<HTMLInputElement>(null);
  const help = useRef<HTMLDialogElement>(null);
  useKeys({
    "/": () => field.current?.focus(),
    "?": () => help.current?.showModal(),
    c: () => go({}),
    $: () => go({ view: "bill" }),
  });
  // What other pages have it under.
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (!(event.ctrlKey || event.metaKey) || event.key !== "k") return;
      event.preventDefault();
      field.current?.focus();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
  const search = (event: Event) => {
    event.preventDefault();
    const words = field.current?.value.trim() ?? "";
    if (words.length > 1) go({ view: "search", words });
  };
  return (
    <header class="top">
      <a class="brand" href="#/" aria-label="Contexture, all sessions">
        <i class="mark" aria-hidden="true" /> Contexture
      </a>
      <div class="crumbs">
        {children ?? <bdi class="dim">{safe(about.name)}</bdi>}
        {about.is_live && !isGone && <i class="live" role="img" aria-label="live" />}
        <span class="bad" role="status">{isGone && "the server has ended"}</span>
      </div>
      {actions}
      {about.kind !== "export" && <a class="tab" href={address({ view: "bill" })} aria-current={route.view === "bill" ? "page" : undefined}>Bill</a>}
      <form role="search" onSubmit={search}>
        <input ref={field} type="search" placeholder="Find a text  /" aria-label="Search all blocks" defaultValue={route.view === "search" ? route.words : ""} />
      </form>
      <button class="help" aria-label="Keys" title="Keys (?)" onClick={() => help.current?.showModal()}>?</button>
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
    </header>
  );
}

const keys = [
  ["↑ ↓ j k", "move in a list"],
  ["Enter", "open"],
  ["Esc", "close, or go back"],
  ["[ ]", "request before, next request"],
  ["e", "next request in which something happened"],
  ["a", "all requests, or what happened"],
  ["1 2 3", "sent, as it came, against the request before"],
  ["d", "first difference"],
  ["o", "in order or by size"],
  ["p", "pin the open block"],
  ["f", "filter the sessions"],
  ["/", "search"],
  ["c $", "sessions, bill"],
];
