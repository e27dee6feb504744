// Where a figure comes from. Three words, each with a sign of its own.

const marks = {
  reported: { sign: "●", says: "reported: by the provider’s own figures" },
  simulated: { sign: "◇", says: "simulated: a recording has no bill, so a provider’s cache was simulated" },
  estimated: { sign: "≈", says: "estimated: nobody billed this" },
} as const;

export type Origin = keyof typeof marks;

export function Mark({ origin }: { origin: Origin }) {
  const { sign, says } = marks[origin];
  return (
    <span class={`origin origin-${origin}`} title={says}>
      <i aria-hidden="true">{sign}</i> {origin}
    </span>
  );
}

/** What a bill is. */
export function billed(isSimulated: boolean | undefined): Origin {
  return isSimulated ? "simulated" : "reported";
}
