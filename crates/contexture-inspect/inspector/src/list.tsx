// A list of any length: only what can be seen is in the page.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

/** Rows beyond the edges that are drawn all the same. */
const BEYOND = 8;

interface Props {
  id: string;
  label: string;
  total: number;
  /** Height of every row, in pixels. */
  height: number;
  /** Rows that are higher, sorted, with by how much. */
  taller?: { rows: number[]; by: number };
  selected: number;
  onSelect: (row: number) => void;
  onOpen?: (row: number) => void;
  /** Changes when the list is another one; then it begins at the selected row. */
  subject: string;
  /** Whether it has the focus when the page opens. */
  takesFocus?: boolean;
  render: (row: number, isSelected: boolean) => ComponentChildren;
}

export function List(props: Props) {
  const { id, label, total, height, taller, selected, onSelect, onOpen, subject, takesFocus, render } = props;
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, size: 800 });

  const above = (row: number) => row * height + (taller ? before(taller.rows, row) * taller.by : 0);
  const whole = above(total);

  const look = () => {
    const element = box.current;
    if (element) setView({ top: element.scrollTop, size: element.clientHeight });
  };
  useLayoutEffect(() => {
    look();
    const observer = new ResizeObserver(look);
    if (box.current) observer.observe(box.current);
    return () => observer.disconnect();
  }, []);

  const reveal = (row: number, inTheMiddle: boolean) => {
    const element = box.current;
    if (!element || row < 0) return;
    const [top, bottom] = [above(row), above(row + 1)];
    if (inTheMiddle) element.scrollTop = Math.max(0, top - element.clientHeight / 3);
    else if (top < element.scrollTop) element.scrollTop = top;
    else if (bottom > element.scrollTop + element.clientHeight) element.scrollTop = bottom - element.clientHeight;
    look();
  };
  useLayoutEffect(() => reveal(selected, true), [subject, total > 0]);
  // Keys work from the first one on, unless the person is somewhere else already.
  useEffect(() => {
    const nowhere = document.activeElement === null || document.activeElement === document.body;
    if (takesFocus && nowhere) box.current?.focus({ preventScroll: true });
  }, []);
  // Only a change of the selection moves the list: who has scrolled away stays there, whatever arrives.
  useEffect(() => reveal(selected, false), [selected, selected < total]);

  const [first, last] = rowsIn(view.top, view.top + view.size, total, above);
  const pressed = (event: KeyboardEvent) => {
    const page = Math.max(1, Math.floor(view.size / height) - 1);
    const steps: Record<string, number> = {
      ArrowDown: 1, ArrowUp: -1, j: 1, k: -1, PageDown: page, PageUp: -page, Home: -total, End: total,
    };
    const step = steps[event.key];
    if (step !== undefined) {
      event.preventDefault();
      event.stopPropagation();
      onSelect(Math.min(total - 1, Math.max(0, (selected < 0 ? (step > 0 ? -1 : 0) : selected) + step)));
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      if (selected >= 0) (onOpen ?? onSelect)(selected);
    }
  };

  const rows = [];
  for (let row = first; row < last; row++) {
    const isSelected = row === selected;
    rows.push(
      <div
        key={row}
        id={`${id}-${row}`}
        role="option"
        aria-selected={isSelected}
        aria-posinset={row + 1}
        aria-setsize={total}
        class={isSelected ? "row selected" : "row"}
        style={{ top: `${above(row)}px`, height: `${above(row + 1) - above(row)}px` }}
        onClick={() => (onOpen ?? onSelect)(row)}
      >
        {render(row, isSelected)}
      </div>,
    );
  }
  const isDrawn = selected >= first && selected < last;
  return (
    <div
      ref={box}
      id={id}
      class="list"
      data-subject={subject}
      role="listbox"
      aria-label={label}
      aria-activedescendant={isDrawn ? `${id}-${selected}` : undefined}
      tabIndex={0}
      onScroll={look}
      onKeyDown={pressed}
    >
      <div class="rows" style={{ height: `${whole}px` }}>
        {rows}
      </div>
    </div>
  );
}

/** How many numbers of a sorted list are below another. */
function before(sorted: number[], limit: number): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]! < limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

function rowsIn(top: number, bottom: number, total: number, above: (row: number) => number): [number, number] {
  const find = (place: number) => {
    let [low, high] = [0, total];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (above(middle + 1) <= place) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  return [Math.max(0, find(top) - BEYOND), Math.min(total, find(bottom) + 1 + BEYOND)];
}
