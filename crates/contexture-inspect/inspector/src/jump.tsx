// A link to another part of the same page.

import type { ComponentChildren } from "preact";

/** Shows a part of the page, and gives it the focus. */
export function show(part: string): void {
  const target = document.getElementById(part);
  if (!target) return;
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  target.scrollIntoView({ block: "start", behavior: calm ? "auto" : "smooth" });
  target.focus({ preventScroll: true });
}

export function Jump({ to, kind, children, onClick }: { to?: string; kind?: string; children: ComponentChildren; onClick?: () => void }) {
  // A link and not a button: its words break over lines like those around them.
  return (
    <a
      class={`jump${kind ? ` jump-${kind}` : ""}`}
      href={location.hash || "#/"}
      onClick={(event) => {
        event.preventDefault();
        if (onClick) onClick();
        else show(to!);
      }}
    >
      {children}
    </a>
  );
}
