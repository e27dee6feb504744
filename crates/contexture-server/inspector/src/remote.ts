// Everything from the server that served the page.

import type { Data, Page, WindowQuery } from "./types";

const base = "/api/v1/";

async function get<T>(path: string): Promise<T> {
  return answered(await fetch(base + path, { credentials: "same-origin" }));
}

async function send(method: string, path: string, body?: unknown): Promise<void> {
  const headers = { "x-contexture": "1", "content-type": "application/json" };
  await answered(await fetch(base + path, { method, headers, credentials: "same-origin", body: JSON.stringify(body) }));
}

async function answered<T>(response: Response): Promise<T> {
  if (response.ok) return response.json();
  const body = await response.json().catch(() => null);
  throw new Error(body?.error?.message ?? `the server answered ${response.status}`);
}

function query(pairs: Record<string, string | number | null | undefined>): string {
  const given = Object.entries(pairs).filter(([, value]) => value !== null && value !== undefined);
  return "?" + given.map(([name, value]) => `${name}=${encodeURIComponent(value as string)}`).join("&");
}

const of = (id: string) => `conversations/${encodeURIComponent(id)}`;
const items = <T>(page: Promise<Page<T>>) => page.then((page) => page.items);

export const remote: Data = {
  about: () => get("about"),
  conversations: (from, limit) => get("conversations" + query({ from, limit })),
  conversation: (id) => get(of(id)),
  turns: (id) => items(get(`${of(id)}/turns`)),
  requests: (id, from, limit) => get(`${of(id)}/requests` + query({ from, limit })),
  window: (id, n, { form, bySize, from, limit, block }: WindowQuery) =>
    get(`${of(id)}/requests/${n}/window` + query({ form, order: bySize ? "size" : "place", from, limit, block })),
  block: (id, block, from) => get(`${of(id)}/blocks/${block}` + query({ from })),
  files: (id) => items(get(`${of(id)}/files`)),
  history: (id, path) => items(get(`${of(id)}/history` + query({ path }))),
  tools: (id) => items(get(`${of(id)}/tools`)),
  bill: (by) => items(get("bill" + query({ by }))),
  search: (q, conversation, before) => get("search" + query({ q, conversation, before, limit: 50 })),
  exportAddress: (id) => `${base}${of(id)}/export`,
  pin: (id, block, pinned) => send("POST", `${of(id)}/pins`, { block, pinned }),
  folding: (id, allowed) => send("POST", `${of(id)}/folding`, { allowed }),
  forget: (id) => send("DELETE", of(id)),
  follow(told) {
    const source = new EventSource(base + "events");
    for (const name of ["request", "conversation", "forgotten", "complete", "reload"]) {
      source.addEventListener(name, (event) => told(name, JSON.parse((event as MessageEvent).data)));
    }
    return () => source.close();
  },
};
