// Events of the server. An EventSource cannot send a header, so its format is read here.

type Told = (event: string, data: { conversation?: string; n?: number }) => void;

/** How long to wait before asking again after a connection broke. */
const PAUSE_MS = 1000;

/** Tells of events until the returned function is called. Whatever breaks is asked for again, and then all is read anew. */
export function follow(address: string, headers: Record<string, string>, told: Told): () => void {
  const ended = new AbortController();
  void (async () => {
    for (let isFirst = true; !ended.signal.aborted; isFirst = false) {
      try {
        const response = await fetch(address, { headers, credentials: "omit", signal: ended.signal });
        // Who is refused once is refused again.
        if (response.status === 401 || response.status === 403) return;
        if (response.ok && response.body) {
          if (!isFirst) told("reload", {});
          await read(response.body, told);
        }
      } catch {
        // The server is gone for now, or the page is.
      }
      if (!ended.signal.aborted) told("gone", {});
      if (!ended.signal.aborted) await new Promise((done) => setTimeout(done, PAUSE_MS));
    }
  })();
  return () => ended.abort();
}

async function read(body: ReadableStream<Uint8Array>, told: Told): Promise<void> {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop()!;
    for (const part of parts) tell(part, told);
  }
}

function tell(part: string, told: Told): void {
  const field = (name: string) => part.split("\n").find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
  const [event, data] = [field("event"), field("data")];
  if (event && data) told(event, JSON.parse(data));
}
