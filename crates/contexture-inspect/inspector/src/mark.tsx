// Whether figures are those of a provider.

/** Says once that all figures of bills are simulated, and which model's prices they have. */
export function Mark({ model }: { model: string }) {
  const name = model.replace(" (assumed)", "");
  return (
    <span class="origin" title="A recording has no bill, so a provider’s cache was simulated.">
      <i aria-hidden="true">◇</i> simulated{name && `, ${name}`}{name !== model && " assumed"}
    </span>
  );
}
