// One request as a story: a sentence, what the model sees, where that may be wrong, what was taken away, and what it cost.

import { useState } from "preact/hooks";
import { Jump } from "./jump";
import { dollars, duration, kindOf, number, partNames, pathParts, plural, price, range, safe, short } from "./text";
import type { Conversation, NamedBlock, Part, ShownFile, Story } from "./types";
import { useAbout } from "./use";

/** Rows of a table that are shown at first. */
const FEW = 10;

type Form = "sent" | "came" | "before";

export interface StoryProps {
  story: Story;
  conversation: Conversation;
  onBlock: (block: number, form?: Form) => void;
  onRequest: (n: number) => void;
  onForm: (form: Form) => void;
  onFile: (path: string) => void;
}

/** Unchanged tokens that were not found in the cache: fewer are an error of rounding. */
const isAgain = ({ again, line }: Story) => again > 0.03 * line.sent_tokens;

/** Why a request cost what it did, as far as the gateway knows. */
function because({ line, fold }: Story): string {
  if (fold) return `Folded: ${fold.reason.split(";")[0]!}`;
  const verdict = line.verdicts.find(({ kind }) => ["expired", "missed", "tools", "system"].includes(kind));
  return verdict ? verdict.text[0]!.toUpperCase() + verdict.text.slice(1) : "";
}

/** The sentence that says it all, made of links. */
export function Sentence(props: StoryProps) {
  const { story, onRequest } = props;
  const { line, files, times_usual: times, lost, fold, hidden } = story;
  const { record } = line;
  const changed = files.filter((file) => file.changed > 0).length;
  const why = because(story);
  const cost = story.dollars ? dollars(story.dollars[0]) : record.bill ? `${short(record.bill.billed)} tokens at the plain price` : "";
  const neighbours = times >= 1.5 ? `${times >= 3 ? Math.round(times) : times.toFixed(1)}× its neighbours` : "";
  return (
    <p class="sentence">
      Request {line.n}: the model {line.is_over ? "sees" : "is being sent"} <Jump to="window">{short(line.sent_tokens - (hidden?.tokens ?? 0))}{record.budget !== undefined && ` of ${short(record.budget)}`}</Jump>.{" "}
      {hidden && <><Jump kind="warn" onClick={() => props.onBlock(hidden.block, "sent")}>{short(hidden.tokens)} before the provider’s own summary are hidden</Jump>. </>}
      {why && <><Jump to={fold ? "fold" : "cost"} kind="made">{safe(why)}</Jump>; </>}
      {cost && <><Jump to="cost" kind={neighbours ? "bad" : undefined}>{cost}{neighbours && `, ${neighbours}`}</Jump>.{" "}</>}
      {record.status >= 400 && <span class="bad">The provider answered {record.status}. </span>}
      {files.length > 0 && (
        changed > 0
          ? <Jump to="files" kind="warn">{changed} of {plural(files.length, "file")} changed since {changed === 1 ? "it was" : "they were"} seen</Jump>
          : <Jump to="files">{plural(files.length, "file")} as seen</Jump>
      )}
      {lost && <>{files.length > 0 ? " and " : ""}<Jump kind="bad" onClick={() => onRequest(lost[0])}>own changes in {plural(lost[1].length, "file")} are gone</Jump></>}
      {(files.length > 0 || lost) && "."}
    </p>
  );
}

/** What the model sees, by its parts, to the scale of the budget. */
export function Parts({ story, onBlock, onForm }: StoryProps) {
  const { line, parts, blocks, hidden } = story;
  const scale = Math.max(line.record.budget ?? 0, line.sent_tokens, 1);
  const free = scale - line.sent_tokens;
  const width = (tokens: number) => `${(100 * tokens) / scale}%`;
  const cached = line.cached_tokens;
  const again = isAgain(story) ? story.again : 0;
  const largest = parts.flatMap((part) => part.largest.map((block) => ({ ...block, part: part.part }))).sort((one, other) => other.tokens - one.tokens).slice(0, 4);
  return (
    <section id="window" tabIndex={-1} aria-label="What it sees now">
      <div class="caption">
        <h2>What it sees now</h2>
        <span class="right small dim"><Jump to="blocks-part">{plural(blocks, "block")}</Jump>{line.came_tokens > line.sent_tokens && <>, <Jump onClick={() => onForm("came")}>{short(line.came_tokens - line.sent_tokens)} of what came are not sent</Jump></>}</span>
      </div>
      <ul class="parts">
        {parts.filter(({ tokens }) => tokens > 0).map(({ part, tokens, blocks, largest }) => (
          <li key={part} class={`part-${part}`} style={{ width: width(tokens), "--share": width(tokens) }}>
            <button class="part" title={`${partNames[part]}: ${number(tokens)} tokens in ${plural(blocks, "block")}. The largest: ${largest.map((block) => `${nameOf(block, part)} (${short(block.tokens)})`).join(", ")}`} onClick={() => largest[0] && onBlock(largest[0].block, "sent")}>
              <b>{partNames[part]}</b> <span>{short(tokens)}</span>
            </button>
          </li>
        ))}
        {free > 0 && <li class="free" style={{ width: width(free) }}>free {short(free)}</li>}
      </ul>
      <div class="cached" aria-hidden="true">
        {cached !== null && <i class="is-cached" style={{ width: width(cached) }} />}
        {again > 0 && <i class="is-again" style={{ width: width(again) }} />}
      </div>
      <p class="small dim">
        {cached !== null && <><i class="dot is-cached" /><Jump onClick={() => onForm("before")}>read from the cache {short(cached)}</Jump></>}
        {again > 0 && <> <i class="dot is-again" /><Jump onClick={() => onForm("before")}>unchanged, but billed again {short(again)}</Jump></>}
        {hidden && <> · <Jump onClick={() => onBlock(hidden.block, "sent")}>not seen, compacted by the provider {short(hidden.tokens)}</Jump></>}
        {largest.length > 0 && <span class="largest">largest: {largest.map((block, at) => <span key={block.block}>{at > 0 && ", "}<Jump onClick={() => onBlock(block.block, "sent")}><bdi>{nameOf(block, block.part)}</bdi> {short(block.tokens)}</Jump></span>)}</span>}
      </p>
    </section>
  );
}

/** What a block is called in a sentence. */
function nameOf({ name }: NamedBlock, part?: Part): string {
  const called = part === "files" ? pathParts(name)[0] : name;
  const letters = [...safe(called)];
  return (letters.length > 48 ? `${letters.slice(0, 48).join("")}…` : letters.join("")) || (part ? partNames[part] : "a block");
}

/** The files that the window shows: one row and one bar each. What changed a file is said once, and whole. */
export function FilesShown({ story, onBlock, onFile }: StoryProps) {
  const [isAll, setAll] = useState(false);
  const { files } = story;
  if (files.length === 0) return null;
  const most = Math.max(...files.map(({ lines }) => lines));
  const shown = isAll ? files : files.slice(0, FEW);
  const names = files.map(({ path }) => pathParts(path)[0]);
  return (
    <section id="files" tabIndex={-1} aria-label="Where it may be wrong">
      <div class="caption">
        <h2>Where it may be wrong</h2>
        <ul class="legend"><li>lines shown, by file:</li><li><i class="dot fact-verified" />verified</li><li><i class="dot fact-seen" />as seen or written</li><li><i class="dot fact-changed" />changed since</li></ul>
      </div>
      <table class="files">
        <caption class="unseen">Files that the window shows</caption>
        <thead class="unseen"><tr><th scope="col">file</th><th scope="col">lines</th><th scope="col">known as</th><th scope="col">why</th></tr></thead>
        <tbody>
          {shown.map((file, at) => {
            const [name, directory] = pathParts(file.path);
            const cause = file.causes?.join("\n") ?? "";
            const isSame = at > 0 && cause !== "" && cause === shown[at - 1]!.causes?.join("\n");
            // The directory tells apart what has the same name.
            const isDouble = names.indexOf(name) !== names.lastIndexOf(name);
            return (
              <tr key={file.path}>
                <td><button class="link strong" title={safe(file.path)} onClick={() => onFile(file.path)}><bdi>{safe(name)}</bdi></button>{isDouble && <bdi class="dim small"> {safe(pathParts(directory)[0])}</bdi>}</td>
                <td><Lines file={file} most={most} /></td>
                <td class="nowrap"><button class={file.changed > 0 ? "tag fact-changed" : "link plain"} onClick={() => onBlock(file.block, "sent")}>{known(file)}</button></td>
                <td class="why">{isSame ? <span class="dim">the same</span> : <bdi>{safe(cause) || since(file)}</bdi>}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {files.length > FEW && <button class="link small" onClick={() => setAll(!isAll)}>{isAll ? "Show fewer" : `Show all ${files.length}`}</button>}
    </section>
  );
}

function Lines({ file: { lines, verified, changed }, most }: { file: ShownFile; most: number }) {
  const part = (count: number) => `${(100 * count) / most}%`;
  return (
    <svg class="lines" aria-hidden="true">
      <rect class="fact-changed" width={part(changed)} height="100%" />
      <rect class="fact-seen" x={part(changed)} width={part(lines - changed - verified)} height="100%" />
      <rect class="fact-verified" x={part(lines - verified)} width={part(verified)} height="100%" />
    </svg>
  );
}

/** How well the lines of a file are known, in few words. */
function known({ lines, verified, changed }: ShownFile): string {
  if (changed > 0) return `${changed === lines ? plural(lines, "line") : `${changed} of ${lines}`} changed since`;
  return verified === 0 ? plural(lines, "line") : verified === lines ? `${plural(lines, "line")}, verified` : `${verified} of ${lines} verified`;
}

/** Since when the lines of a file are as they are shown. */
function since({ lines, verified, messages, requests }: ShownFile): string {
  if (verified === lines) return "as on the disk";
  return [messages && `as seen or written at message ${range(messages)}`, requests && `as read at request ${range(requests)}`].filter(Boolean).join(", ");
}

const removedNames: Record<string, [string, string]> = {
  made: ["older rewritten block", "older rewritten blocks"],
  file: ["file read", "file reads"],
  call: ["call", "calls"],
  output: ["tool output", "tool outputs"],
  thought: ["thought", "thoughts"],
  told: ["text of the agent", "texts of the agent"],
  said: ["message of people", "messages of people"],
  other: ["other block", "other blocks"],
};

/** What a fold cost, whether that was paid back, and what left the window. */
export function FoldView({ story, onBlock, onForm, onFile, onRequest }: StoryProps) {
  const { removed, fold, lost, line } = story;
  const { kind } = useAbout();
  // A recording never passed through a gateway, which is what keeps texts for `contexture show`.
  const isKept = kind === "gateway" || kind === "store";
  if (!fold && removed.length === 0 && !lost) return null;
  const isPaid = fold !== undefined && fold.paid_back !== null && (fold.next === null || fold.paid_back <= fold.next);
  const sum = removed.reduce((sum, { tokens }) => sum + tokens, 0);
  const request = (n: number) => <button class="link" onClick={() => onRequest(n)}>request {n}</button>;
  return (
    <section id="fold" tabIndex={-1} aria-label={fold ? "The fold" : "What left the window"}>
      <div class="caption"><h2>{fold ? "The fold" : "What left the window"}</h2></div>
      <table class="facts-table">
        <tbody>
          {fold && (
            <>
              <tr><th scope="row">why</th><td>{safe(fold.reason.replace(/(do not fit): .*$/s, "$1"))}</td></tr>
              <tr>
                <th scope="row">cost</th>
                <td>
                  <Jump onClick={() => onForm("before")}>{price(fold.cost)} billed again</Jump>
                  {fold.estimated && ` (${price(fold.estimated)} as decided)`}; every later request costs {price(fold.saves_per_request)} less
                </td>
              </tr>
              <tr>
                <th scope="row">paid back</th>
                <td>{isPaid ? <>with {request(fold.paid_back!)}</> : fold.next !== null ? <>not before the next fold, with {request(fold.next)}</> : "not yet"}</td>
              </tr>
            </>
          )}
          {removed.map(({ kind, count, tokens, largest }, at) => (
            <tr key={kind}>
              {at === 0 ? <th scope="row">took away {short(sum)}</th> : <td />}
              <td>
                <button class="link" onClick={() => largest[0] && onBlock(largest[0].block, "before")}>{plural(count, ...removedNames[kind]!)}</button>, {short(tokens)}:{" "}
                {largest.map((block, at) => <span key={block.block}>{at > 0 && ", "}<Jump onClick={() => onBlock(block.block, "before")}><bdi>{nameOf(block, kind === "file" ? "files" : undefined)}</bdi></Jump></span>)}
                {count > largest.length && " …"}
              </td>
            </tr>
          ))}
          {fold && cuts(fold.cut).map(({ what, hash, tokens, count }) => (
            <tr key={hash}>
              <th scope="row">cut</th>
              <td>{count > 1 && `${number(count)} × `}{what === "said" ? "something that was said" : what === "told" ? "something the agent said" : "the record of a call"}{tokens > 0 && `, ${plural(tokens, "token")}`}{isKept && <>: <code>contexture show {safe(hash)}</code></>}</td>
            </tr>
          ))}
          {lost && (
            <tr>
              <th scope="row">no room for</th>
              <td>own changes in {lost[1].map((path, at) => <span key={path}>{at > 0 && ", "}<button class="link" onClick={() => onFile(path)}><bdi>{safe(pathParts(path)[0])}</bdi></button></span>)}{lost[0] !== line.n && <>, since {request(lost[0])}</>}</td>
            </tr>
          )}
        </tbody>
      </table>
      {line.came_tokens > line.sent_tokens && (
        <p class="dim small">The agent has all of it: reading a file again brings its lines back{isKept && <>, and <code>contexture show</code> prints what was cut</>}. <button class="link" onClick={() => onForm("came")}>Everything that is not in this window</button></p>
      )}
    </section>
  );
}

/** What a fold cut, the same texts together. */
function cuts(cut: [string, string, number][]) {
  const known = new Map<string, { what: string; hash: string; tokens: number; count: number }>();
  for (const [what, hash, tokens] of cut) {
    const one = known.get(hash) ?? { what, hash, tokens: 0, count: 0 };
    known.set(hash, { ...one, tokens: one.tokens + tokens, count: one.count + 1 });
  }
  return [...known.values()];
}

const decisions: Record<string, string> = { shorten: "Shortened", "bring back": "Brought back", cold: "Cache expired", disk: "Compared with the disk", reference: "Files put in", memory: "Memory" };

/** What else was decided about a request, the same together. */
export function Happened({ story: { line } }: StoryProps) {
  const told = new Map<string, number>();
  for (const note of line.record.decided) {
    const text = `${decisions[note.what] ?? note.what}: ${note.reason}`;
    if (note.what !== "fold") told.set(text, (told.get(text) ?? 0) + 1);
  }
  for (const { kind, text } of line.verdicts) if (["failed", "passed", "paid_back"].includes(kind)) told.set(text, 1);
  if (told.size === 0) return null;
  return (
    <section id="happened" aria-label="What else happened">
      <div class="caption"><h2>What else happened</h2></div>
      <ul>{[...told].map(([text, count]) => <li key={text}>{safe(text)}{count > 1 && ` × ${count}`}</li>)}</ul>
    </section>
  );
}

/** What the model answered. */
export function Answer({ story, onBlock }: StoryProps) {
  const { answer, line } = story;
  return (
    <section id="answer" tabIndex={-1} aria-label="What the model answered">
      <div class="caption"><h2>What the model answered</h2></div>
      {answer.length === 0 && <p class="dim">{!line.is_over ? "The answer has not ended." : line.record.status >= 400 ? `There is none: the provider returned ${line.record.status}.` : "It could not be read as it came; it is known once the agent sends it back with its next request."}</p>}
      <ul class="answer">
        {answer.map(({ id, kind, name, tokens, preview }) => (
          <li key={id}>
            <button class="link" onClick={() => onBlock(id, "came")}>{kind === "call" ? <bdi>{safe(name)}</bdi> : kindOf({ kind }) || "said"}</button>{" "}
            <bdi>{safe(preview)}</bdi> <span class="dim">{short(tokens)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

const signalNames: Record<string, string> = {
  repeated_reads: "a part of a file was read again",
  reads_after_fold: "of these, after a fold that may have taken it",
  failed_edits: "the text of an edit was not in the file",
  repeated_instructions: "an instruction was given again",
  noes: "somebody began with “no”",
  interruptions: "the agent was stopped",
  tool_errors: "a call failed",
};

/** Signs that something was missing, with where they were seen. */
export function Signals({ story, onRequest }: StoryProps) {
  const signals = story.signals ?? [];
  if (signals.length === 0) return null;
  return (
    <section id="signals" tabIndex={-1} aria-label="Signs that something was missing">
      <div class="caption"><h2>Signs that something was missing</h2><span class="small dim">none of them proves harm by itself</span></div>
      <table class="facts-table">
        <tbody>
          {signals.map(({ kind, count, requests }) => (
            <tr key={kind}>
              <th scope="row">{number(count)} ×</th>
              <td>{signalNames[kind] ?? kind}, newest at request {requests.map((n, at) => <span key={n}>{at > 0 && ", "}<button class="link" onClick={() => onRequest(n)}>{n}</button></span>)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** What it cost. */
export function CostView({ story, onForm }: StoryProps) {
  const { line } = story;
  const { usage, bill, context, first_byte_ms, own_us } = line.record;
  if (!usage || !bill) {
    return <section id="cost" tabIndex={-1} aria-label="What it cost"><div class="caption"><h2>What it cost</h2></div><p class="dim">{line.is_over ? "The provider reported no usage." : "It is not billed yet."}</p></section>;
  }
  const written = usage.cache_write + usage.cache_write_hour;
  const row = (label: string, tokens: number) => tokens > 0 && <tr><th scope="row">{label}</th><td class="right">{number(tokens)}</td></tr>;
  const cost = (dollars: number | undefined, billed: number) => price({ dollars: dollars ?? null, billed });
  return (
    <section id="cost" tabIndex={-1} aria-label="What it cost">
      <div class="caption"><h2>What it cost</h2></div>
      <table class="facts-table">
        <tbody>
          {row("read from the cache", usage.cache_read)}
          {row("written to the cache", written)}
          {row("neither", usage.input)}
          {row("answered", usage.output)}
          <tr class="sum"><th scope="row">paid</th><td class="right">{cost(story.dollars?.[0], bill.billed)}</td></tr>
          <tr><th scope="row"><Jump onClick={() => onForm("came")}>as it came, {short(bill.came)}</Jump></th><td class="right">{cost(story.dollars?.[1], bill.passed_through)}</td></tr>
        </tbody>
      </table>
      {context !== null && bill.came > context && <p class="dim small">It could not have been sent as it came: {short(bill.came)} are above the model’s window of {short(context)}.</p>}
      {first_byte_ms > 0 && <p class="dim small">First byte after {duration(first_byte_ms)}, own work {(own_us / 1000).toFixed(1)} ms.</p>}
    </section>
  );
}
