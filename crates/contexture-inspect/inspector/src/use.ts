// What components share: loading, and pages of long lists.

import { createContext } from "preact";
import { useCallback, useContext, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { About, Data } from "./types";

export const DataContext = createContext<Data>(null!);
export const AboutContext = createContext<About>(null!);
export const useData = () => useContext(DataContext);
export const useAbout = () => useContext(AboutContext);
/** Whether the server of the page has ended. */
export const GoneContext = createContext(false);
export const useServerGone = () => useContext(GoneContext);

export interface Loaded<T> {
  value?: T;
  error?: string;
}

/** Loads something whenever what it depends on changes. What was there before stays until the new one is here. */
export function useLoaded<T>(load: () => Promise<T>, keys: unknown[]): Loaded<T> {
  const [loaded, setLoaded] = useState<Loaded<T>>({});
  // At once: an ordinary effect waits for the next frame before it asks.
  useLayoutEffect(() => {
    let isOld = false;
    load().then(
      (value) => isOld || setLoaded({ value }),
      (error: Error) => isOld || setLoaded({ error: error.message }),
    );
    return () => {
      isOld = true;
    };
  }, keys);
  return loaded;
}

/** Rows of one page. */
export const PAGE = 100;

/** Pages that are held; those that were used longest ago go first. */
const MAX_PAGES = 12;

/** The rows of a long list, loaded as they are shown. `key` tells one list from another. */
export function usePages<T>(key: string, load: (page: number) => Promise<T[]>) {
  const held = useRef<{ key: string; pages: Map<number, T[]>; asked: Set<number> }>({ key, pages: new Map(), asked: new Set() });
  const [, redraw] = useState(0);
  if (held.current.key !== key) held.current = { key, pages: new Map(), asked: new Set() };
  const current = held.current;
  const loading = useRef(load);
  loading.current = load;

  const fetchPage = useCallback((page: number) => {
    const own = held.current;
    if (own.asked.has(page)) return;
    own.asked.add(page);
    loading.current(page).then(
      (rows) => {
        own.asked.delete(page);
        own.pages.delete(page);
        own.pages.set(page, rows);
        const oldest = own.pages.keys().next().value;
        if (own.pages.size > MAX_PAGES && oldest !== undefined) own.pages.delete(oldest);
        if (held.current === own) redraw((count) => count + 1);
      },
      () => own.asked.delete(page),
    );
  }, []);

  const row = (at: number): T | undefined => {
    const page = Math.floor(at / PAGE);
    const rows = current.pages.get(page);
    if (!rows) fetchPage(page);
    return rows?.[at % PAGE];
  };
  const put = (page: number, rows: T[]) => current.pages.set(page, rows);
  const again = (at: number) => fetchPage(Math.floor(at / PAGE));
  const clear = () => {
    current.pages.clear();
    redraw((count) => count + 1);
  };
  return { row, put, again, clear };
}

/** Calls something when a key is pressed that is not for a field. */
export function useKeys(keys: Record<string, (event: KeyboardEvent) => void>): void {
  const current = useRef(keys);
  current.current = keys;
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) return;
      if (document.querySelector("dialog[open]")) return;
      const act = current.current[event.key];
      if (!act) return;
      event.preventDefault();
      act(event);
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}
