// The whole text of one block.

import { useEffect, useRef, useState } from "preact/hooks";
import { bytes, gradeNames, kindOf, number, range, safe, stateNames } from "./text";
import type { Block, BlockText } from "./types";
import { useAbout, useData } from "./use";

interface Props {
  conversation: string;
  id: number;
  /** What the window says of it, if it is in the window. */
  shown: Block | undefined;
  onClose: () => void;
  onRequest: (n: number) => void;
  onFile: (path: string) => void;
  onChanged: () => void;
}

export function BlockView({ conversation, id, shown, onClose, onRequest, onFile, onChanged }: Props) {
  const data = useData();
  const about = useAbout();
  const [which, setWhich] = useState(id);
  const [pieces, setPieces] = useState<BlockText[]>([]);
  const [error, setError] = useState("");
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => setWhich(id), [id]);
  useEffect(() => {
    let isOld = false;
    setError("");
    data.block(conversation, which, 0).then(
      (piece) => isOld || setPieces([piece]),
      (error: Error) => isOld || setError(error.message),
    );
    return () => {
      isOld = true;
    };
  }, [conversation, which]);
  useEffect(() => heading.current?.focus({ preventScroll: true }), [id]);
  const first = pieces[0];
  const next = pieces.at(-1)?.next;
  const more = async () => {
    if (next !== undefined) setPieces([...pieces, await data.block(conversation, which, next)]);
  };
  const pin = async () => {
    try {
      await data.pin(conversation, id, !shown?.is_pinned);
      onChanged();
    } catch (error) {
      setError((error as Error).message);
    }
  };
  const canPin = about.can_act && first && !["system", "tools", "made"].includes(first.source) && first.kind !== "thought";
  const kind = first ? kindOf({ kind: first.kind, part: shown?.part, made: shown?.made }) : "";
  const label = first?.name || kind || "A block";
  return (
    <aside class="detail" aria-label="Block">
      <header>
        <h2 ref={heading} tabIndex={-1}>
          <bdi>{safe(label)}</bdi>
        </h2>
        {canPin && (
          <button aria-pressed={shown?.is_pinned ?? false} title="Never fold this (p)" onClick={pin} id="pin">
            {shown?.is_pinned ? "Pinned" : "Pin"}
          </button>
        )}
        <button class="close" aria-label="Close the block" title="Close (Esc)" onClick={onClose}>×</button>
      </header>
      {first && (
        <p class="dim facts">
          {[kind, shown && `${number(shown.tokens)} tokens`, bytes(first.bytes)].filter(Boolean).join(", ")}
          {shown && shown.since > 0 && (
            <>
              , first in{" "}
              <button class="link" onClick={() => onRequest(shown.since)}>request {shown.since}</button>
            </>
          )}
          {first.source === "file" && (
            <>
              , <button class="link" onClick={() => onFile(first.name)}>history of the file</button>
            </>
          )}
        </p>
      )}
      {shown && shown.state !== "kept" && shown.state !== "same" && (
        <p class="facts">
          <span class={`state state-${shown.state}`}>{stateNames[shown.state]}</span> {safe(shown.reason ?? "")}
        </p>
      )}
      {shown?.grade && (
        <p class="facts">
          <span class={`tag grade-${shown.grade}`}>{gradeNames[shown.grade]}</span>{" "}
          {safe(shown.grade_reason ?? "as far as the agent’s own calls tell, the file still has these lines")}
        </p>
      )}
      {shown?.views && shown.views.length > 0 && (
        <ul class="facts views" aria-label="Lines of files in this block">
          {shown.views.map((view, at) => (
            <li key={at}>
              <button class="link" onClick={() => onFile(view.path)}><bdi>{safe(view.path)}</bdi></button> {view.lines}{" "}
              <span class={`tag grade-${view.grade}`}>{gradeNames[view.grade]}</span> <bdi class="dim">{safe(view.cause ?? (view.moments ? `at message ${range(view.moments)}` : ""))}</bdi>
            </li>
          ))}
        </ul>
      )}
      {shown?.other && (
        <div class="segments" role="group" aria-label="Text">
          <button aria-pressed={which === id} onClick={() => setWhich(id)}>This form</button>
          <button aria-pressed={which !== id} onClick={() => setWhich(shown.other!)}>The other form</button>
        </div>
      )}
      {error && <p class="note bad" role="alert">{error}</p>}
      <div class="text" tabIndex={0} role="region" aria-label="Text of the block">
        {pieces.map((piece) => (
          <pre key={piece.from} dir="auto">{safe(piece.text)}</pre>
        ))}
        {next !== undefined && (
          <button onClick={more}>
            Show more ({bytes(next)} of {bytes(first!.bytes)} shown)
          </button>
        )}
      </div>
    </aside>
  );
}
