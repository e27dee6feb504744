// Everything from the server that served the page.

import { follow } from "./events";
import { token } from "./token";
import type { Data, Page, WindowQuery } from "./types";

const base = "/api/v1/";

/** What every request carries: the token, in a header that browsers add for nobody else. */
function own(): Record<string, string> {
  return { authorization: `Bearer ${token()}` };
}

/** What is said once the server of the page has ended. */
const GONE = "The program that served this page has ended. `contexture inspect` shows what it kept.";

/** Asks the server; browsers have only "Failed to fetch" to say when it is gone. */
async function ask(path: string, how: RequestInit = {}): Promise<Response> {
  try {
    return await fetch(base + path, { headers: own(), credentials: "omit", ...how });
  } catch {
    throw new Error(GONE);
  }
}

async function get<T>(path: string): Promise<T> {
  return answered(await ask(path));
}

async function send(method: string, path: string, body?: unknown): Promise<void> {
  const headers = { ...own(), "x-contexture": "1", "content-type": "application/json" };
  await answered(await ask(path, { method, headers, body: JSON.stringify(body) }));
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
  events: (id) => items(get(`${of(id)}/events`)),
  requests: (id, from, limit) => get(`${of(id)}/requests` + query({ from, limit })),
  window: (id, n, { form, bySize, from, limit, block }: WindowQuery) =>
    get(`${of(id)}/requests/${n}/window` + query({ form, order: bySize ? "size" : "place", from, limit, block })),
  block: (id, block, from) => get(`${of(id)}/blocks/${block}` + query({ from })),
  files: (id) => items(get(`${of(id)}/files`)),
  history: (id, path) => items(get(`${of(id)}/history` + query({ path }))),
  tools: (id) => items(get(`${of(id)}/tools`)),
  overview: (id, columns) => get(`${of(id)}/overview` + query({ columns })),
  story: (id, n) => get(`${of(id)}/requests/${n}/story`),
  bill: (by) => get("bill" + query({ by })),
  openAll: () => send("POST", "open", {}),
  search: (q, conversation, before) => get("search" + query({ q, conversation, before, limit: 50 })),
  canExport: true,
  async exported(id) {
    const response = await ask(`${of(id)}/export`);
    return response.ok ? response.blob() : answered(response);
  },
  pin: (id, block, pinned) => send("POST", `${of(id)}/pins`, { block, pinned }),
  folding: (id, allowed) => send("POST", `${of(id)}/folding`, { allowed }),
  forget: (id) => send("DELETE", of(id)),
  follow: (told) => follow(base + "events", own(), told),
};
