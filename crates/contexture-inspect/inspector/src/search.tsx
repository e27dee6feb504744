// Search over all blocks.

import { useEffect, useState } from "preact/hooks";
import { address } from "./route";
import { safe } from "./text";
import { Top } from "./top";
import type { Hit } from "./types";
import { useData } from "./use";

export function Search({ words, conversation }: { words: string; conversation: string | undefined }) {
  const data = useData();
  const [found, setFound] = useState<{ hits: Hit[]; next?: number; words: string } | null>(null);
  const [error, setError] = useState("");
  useEffect(() => {
    let isOld = false;
    setError("");
    if (words.length < 2) return setFound(null);
    data.search(words, conversation ?? null).then(
      (page) => isOld || setFound({ hits: page.items, next: page.next, words }),
      (error: Error) => isOld || setError(error.message),
    );
    return () => {
      isOld = true;
    };
  }, [words, conversation]);
  const more = async () => {
    if (!found) return;
    const page = await data.search(words, conversation ?? null, found.next);
    setFound({ hits: [...found.hits, ...page.items], next: page.next, words });
  };
  return (
    <>
    <Top />
    <main class="sheet wide" aria-live="polite">
      <h1>
        Search for “<bdi>{safe(words)}</bdi>”
      </h1>
      {words.length < 2 && <p class="note">A search needs at least two letters.</p>}
      {error && <p class="note bad">{error}</p>}
      {found && found.hits.length === 0 && <p class="note">No block has these words.</p>}
      <ul class="hits">
        {found?.hits.map((hit) => (
          <li key={`${hit.conversation} ${hit.block}`}>
            <a href={address({ conversation: hit.conversation, n: hit.n, form: hit.form, block: hit.block })}>
              <bdi class="name">{safe(hit.name) || "a text"}</bdi>
              <span class="dim">
                {" "}
                request {hit.n} of <bdi>{safe(hit.title)}</bdi>
              </span>
            </a>
            <p>
              <bdi>
                {safe(hit.before)}
                <mark>{safe(hit.found)}</mark>
                {safe(hit.behind)}
              </bdi>
            </p>
          </li>
        ))}
      </ul>
      {found?.next !== undefined && <button onClick={more}>More</button>}
    </main>
    </>
  );
}
