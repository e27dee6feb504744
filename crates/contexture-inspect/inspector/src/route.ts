// Where the person is, in the address behind the #.

import { useEffect, useState } from "preact/hooks";
import type { Form } from "./types";

export interface Route {
  view: "home" | "conversation" | "bill" | "search";
  conversation?: string;
  /** The request; none yet if it is not said. */
  n?: number;
  tab: "window" | "files" | "tools";
  form: Form;
  bySize: boolean;
  block?: number;
  path?: string;
  by: string;
  words: string;
  /** Of the sessions at home: the project, and by what they are sorted. */
  project?: string;
  sort: string;
  /** Whether all requests are listed, and not only those in which something happened. */
  isAll: boolean;
}

const start: Route = { view: "home", tab: "window", form: "sent", bySize: false, by: "conversation", words: "", sort: "date", isAll: false };

/** A part of an address as it was meant; as it is where that cannot be told. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** A number of an address; none if it is not one. */
function whole(text: string | null | undefined): number | undefined {
  return text && /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

export function parse(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").map(decoded);
  const asked = new URLSearchParams(query);
  const words = asked.get("q") ?? "";
  if (parts[0] === "bill") return { ...start, view: "bill", by: asked.get("by") ?? "conversation" };
  if (parts[0] === "search") return { ...start, view: "search", words, conversation: asked.get("in") ?? undefined };
  if (parts[0] !== "c" || !parts[1]) return { ...start, words, project: asked.get("project") ?? undefined, sort: asked.get("sort") ?? start.sort };
  const form = asked.get("form");
  const tab = asked.get("tab");
  return {
    ...start,
    view: "conversation",
    conversation: parts[1],
    n: whole(parts[2]),
    tab: tab === "files" || tab === "tools" ? tab : "window",
    form: form === "came" || form === "before" ? form : "sent",
    bySize: asked.get("order") === "size",
    isAll: asked.get("list") === "all",
    block: whole(asked.get("block")),
    path: asked.get("path") ?? undefined,
  };
}

export function address(route: Partial<Route>): string {
  const asked = new URLSearchParams();
  if (route.view === "bill") return `#/bill?by=${route.by ?? "conversation"}`;
  if (route.view === "search") {
    asked.set("q", route.words ?? "");
    if (route.conversation) asked.set("in", route.conversation);
    return `#/search?${asked}`;
  }
  if (!route.conversation) {
    if (route.words) asked.set("q", route.words);
    if (route.project !== undefined) asked.set("project", route.project);
    if (route.sort && route.sort !== start.sort) asked.set("sort", route.sort);
    return asked.size > 0 ? `#/?${asked}` : "#/";
  }
  if (route.tab && route.tab !== "window") asked.set("tab", route.tab);
  if (route.form && route.form !== "sent") asked.set("form", route.form);
  if (route.bySize) asked.set("order", "size");
  if (route.isAll) asked.set("list", "all");
  if (route.block !== undefined) asked.set("block", String(route.block));
  if (route.path !== undefined) asked.set("path", route.path);
  const query = asked.size > 0 ? `?${asked}` : "";
  return `#/c/${encodeURIComponent(route.conversation)}${route.n ? `/${route.n}` : ""}${query}`;
}

/** Where the person is now, also before the page was drawn again. */
export const here = (): Route => parse(location.hash);

export function go(route: Partial<Route>, replace = false): void {
  const target = address(route);
  if (target === location.hash) return;
  if (replace) {
    history.replaceState(null, "", target);
    dispatchEvent(new HashChangeEvent("hashchange"));
  } else {
    location.hash = target;
  }
}

export function useRoute(): Route {
  const [route, setRoute] = useState(here);
  useEffect(() => {
    const changed = () => setRoute(here());
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return route;
}
