// What a window is made of, as one bar.

import { sourceOrder } from "./text";
import type { RequestLine } from "./types";

interface Props {
  line: RequestLine;
  /** Tokens that the whole width stands for. */
  scale: number;
}

/** The bar of a request: sources by colour, and what the provider had in its cache hatched. */
export function Bar({ line, scale }: Props) {
  const width = (tokens: number) => `${Math.min(100, (100 * tokens) / Math.max(1, scale))}%`;
  let start = 0;
  const parts = sourceOrder.map((source) => {
    const tokens = line.sources[source] ?? 0;
    const part = tokens > 0 && <rect key={source} class={`fill-${source}`} x={width(start)} width={width(tokens)} height="100%" />;
    start += tokens;
    return part;
  });
  return (
    <svg class="bar" aria-hidden="true" preserveAspectRatio="none">
      {parts}
      {line.cached_tokens !== null && line.cached_tokens > 0 && (
        <rect class="bar-cached" fill="url(#hatch)" width={width(line.cached_tokens)} height="100%" />
      )}
    </svg>
  );
}

/** The hatching that all bars use. */
export function Hatch() {
  return (
    <svg class="defs" aria-hidden="true" width="0" height="0">
      <defs>
        <pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
          <rect class="hatch-line" width="1.6" height="5" />
        </pattern>
      </defs>
    </svg>
  );
}

