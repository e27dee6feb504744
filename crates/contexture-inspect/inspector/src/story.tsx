// One request as a story: a sentence, its window, what the model believes, what was taken away, and what it cost.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Jump } from "./jump";
import { Mark, billed } from "./mark";
import { clock, dollars, duration, gradeNames, kindOf, number, pathParts, percent, plural, safe, short, shortDirectory, sourceNames, sourceOrder } from "./text";
import { address } from "./route";
import type { Conversation, FileView, Piece, Story } from "./types";
import { useAbout } from "./use";

/** Rows of a table that are shown at first. */
const FEW = 10;

export interface StoryProps {
  story: Story;
  conversation: Conversation;
  onBlock: (block: number, form?: "sent" | "came" | "before") => void;
  onRequest: (n: number) => void;
  onForm: (form: "sent" | "came" | "before") => void;
  onFile: (path: string) => void;
}

const isChanged = ({ grade }: FileView) => grade === "changed" || grade === "overtaken";

/** Why a request cost what it did, as far as the gateway knows. */
function because({ line, fold }: Story): string {
  const verdict = line.verdicts.find(({ kind }) => ["expired", "missed", "tools", "system"].includes(kind));
  if (fold) return `the past was folded (${fold.reason.split(";")[0]!})`;
  return verdict?.text ?? "";
}

/** The sentence that says it all, made of links. */
export function Sentence(props: StoryProps) {
  const { story, onRequest, conversation } = props;
  const { line, budget, views, again, usual, lost, fold, hidden } = story;
  const { record, sources } = line;
  const changed = views.filter(isChanged).length;
  const made = sources.made ?? 0;
  const times = record.bill && usual > 0 ? record.bill.billed / usual : 1;
  const why = because(story);
  const price = story.dollars ? dollars(story.dollars[0]) : record.bill ? `${short(record.bill.billed)} tokens at the plain price` : "";
  const files = new Set(views.map(({ path }) => path)).size;
  return (
    <p class="sentence">
      At request {line.n} the model {line.is_over ? "sees" : "is being sent"} <Jump to="window">{short(line.sent_tokens - (hidden?.tokens ?? 0))}{budget !== null && ` of ${short(budget)}`} tokens</Jump>
      {made > 0 && <>, <Jump to="window" kind="made">{short(made)} of them rewritten by Contexture</Jump></>}
      {hidden && (
        <>
          , and nothing of the <Jump kind="warn" onClick={() => props.onBlock(hidden.block, "sent")}>{short(hidden.tokens)} before the provider’s own summary</Jump>
        </>
      )}
      {". "}
      {price && (
        <>
          It cost <Jump to="cost">{price}</Jump> <Mark origin={billed(record.is_simulated)} />
          {times >= 1.5 && `, ${times >= 3 ? Math.round(times) : times.toFixed(1)} times its neighbours`}
          {(why || again > 1000) && times >= 1.5 && (
            <>
              , because {why && <Jump to="taken">{safe(why)}</Jump>}
              {why && again > 1000 && " and "}
              {again > 1000 && <Jump to="window" kind="bad">{short(again)} unchanged tokens were billed again</Jump>}
            </>
          )}
          {". "}
        </>
      )}
      {!fold && line.n > 1 && times < 1.5 && "Nothing was folded. "}
      {views.length > 0 && (
        <>
          <Jump to="files" kind={changed > 0 ? "warn" : undefined}>
            {changed > 0 ? `${changed} of ${plural(views.length, "file view")} ${changed === 1 ? "is" : "are"} from before a change` : `All ${plural(views.length, "view")} of ${plural(files, "file")} are on the disk, or as the model saw them`}
          </Jump>
          {lost ? "; " : ". "}
        </>
      )}
      {lost && (
        <>
          <Jump kind="bad" onClick={() => onRequest(lost[0])}>own changes in {plural(lost[1].length, "file")} did not fit at request {lost[0]}</Jump>.{" "}
        </>
      )}
      {line.came_tokens > line.sent_tokens && (
        <>
          Of what came, <Jump onClick={() => props.onForm("came")}>{short(line.came_tokens - line.sent_tokens)} tokens are not in this window</Jump>.{" "}
        </>
      )}
      {conversation.failed > 0 && record.status >= 400 && `The provider answered ${record.status}.`}
    </p>
  );
}

/** This window to the scale of its budget. */
export function WindowPicture({ story, onBlock, onForm }: StoryProps) {
  const { line, budget, pieces, blocks, again, hidden } = story;
  const scale = Math.max(budget ?? 0, line.sent_tokens, 1);
  const free = scale - line.sent_tokens;
  const width = (tokens: number) => `${(100 * tokens) / scale}%`;
  const cached = pieces.reduce((sum, piece) => sum + (piece.is_cached ? piece.tokens : 0), 0);
  const shown = sourceOrder.filter((source) => line.sources[source]);
  return (
    <section class="picture" id="window" tabIndex={-1} aria-label="This window">
      <div class="caption">
        <h3>This window</h3>
        <span class="dim">in order, to the scale of {budget !== null ? `the budget of ${short(budget)}` : "what was sent"}; orange under a block: file views from before a change</span>
        <span class="right"><Jump to="blocks-part">{plural(blocks, "block")}</Jump></span>
      </div>
      <div class="pieces" aria-hidden="true">
        {pieces.map((piece) => (
          <PieceBox key={piece.block} piece={piece} width={width(piece.tokens)} isWide={piece.tokens / scale > 0.06} onOpen={() => onBlock(piece.block, "sent")} />
        ))}
        {free > 0 && (
          <div class="free" style={{ width: width(free) }}>{free / scale > 0.05 && `free ${short(free)}`}</div>
        )}
      </div>
      <ul class="legend" aria-label="Tokens sent, by source">
        {shown.map((source) => (
          <li key={source}>
            <i class={`dot dot-${source}`} />
            <Jump onClick={() => onBlock(largestOf(pieces, source)!.block, "sent")}>{sourceNames[source]} <b>{short(line.sources[source]!)}</b></Jump>
          </li>
        ))}
        {free > 0 && budget !== null && <li><i class="dot dot-came" />free <b>{short(free)}</b></li>}
        {line.cached_tokens !== null && (
          <li><i class="dot dot-cached" /><Jump onClick={() => onForm("before")}>read from the provider’s cache <b>{short(cached)}</b></Jump></li>
        )}
        {hidden && (
          <li>
            <i class="dot dot-hidden" /><Jump onClick={() => onBlock(hidden.block, "sent")}>not seen by the model, compacted by the provider <b>{short(hidden.tokens)}</b></Jump>
          </li>
        )}
        {again > 0 && <li><i class="dot dot-again" /><Jump onClick={() => onForm("before")}>unchanged, but billed again <b>{short(again)}</b></Jump></li>}
        {line.came_tokens > line.sent_tokens && (
          <li>
            <Jump onClick={() => onForm("came")}>not sent <b>{short(line.came_tokens - line.sent_tokens)}</b></Jump>
          </li>
        )}
      </ul>
      <p class="dim small">
        What fills it most:{" "}
        {largest(pieces).map((piece, at) => (
          <span key={piece.block}>{at > 0 && ", "}<Jump onClick={() => onBlock(piece.block, "sent")}><bdi>{nameOf(piece)}</bdi> ({short(piece.tokens)})</Jump></span>
        ))}
        .
      </p>
    </section>
  );
}

function largest(pieces: Piece[]): Piece[] {
  return [...pieces].sort((one, other) => other.tokens - one.tokens).slice(0, 3);
}

function largestOf(pieces: Piece[], source: string): Piece | undefined {
  return largest(pieces.filter((piece) => piece.source === source))[0] ?? pieces[0];
}

/** What a piece is called in a sentence. */
function nameOf({ name, source }: Piece): string {
  const called = source === "file" ? pathParts(name)[0] : name;
  return [...safe(called)].slice(0, 60).join("") || sourceNames[source]!;
}

function PieceBox({ piece, width, isWide, onOpen }: { piece: Piece; width: string; isWide: boolean; onOpen: () => void }) {
  const { source, made, name, tokens, count, views, changed, is_cached, is_unchanged, is_hidden } = piece;
  const kind = kindOf({ kind: "text", source, made });
  const label = source === "file" ? pathParts(name)[0] : name;
  const title = `${kind}: ${safe(name)}${count > 1 ? ` and ${count - 1} more` : ""}, ${number(tokens)} tokens${views > 0 ? `, ${changed} of ${views} views from before a change` : ""}${is_hidden ? ", not seen by the model: the provider has compacted it" : ""}${is_cached ? ", read from the cache" : is_unchanged ? ", unchanged but billed again" : ""}`;
  return (
    <button tabIndex={-1} class={is_hidden ? "piece piece-hidden" : "piece"} style={{ width }} title={title} onClick={onOpen}>
      <span class={`fill dot-${source}`}>
        {isWide && <><span class="label"><bdi>{safe(label) || kind}</bdi></span><span class="label">{short(tokens)}</span></>}
      </span>
      <i class={`under-line ${is_cached ? "is-cached" : is_unchanged ? "is-again" : ""}`} />
      {views > 0 && (
        <i class="outdated">
          <b style={{ width: `${(100 * changed) / views}%` }} />
        </i>
      )}
    </button>
  );
}

/** What the model believes about files, those from before a change first. */
export function Beliefs({ story, onBlock, onFile }: StoryProps) {
  const [isAll, setAll] = useState(false);
  const { views } = story;
  const changed = views.filter(isChanged).length;
  const shown = isAll ? views : views.slice(0, FEW);
  return (
    <section class="card" id="files" tabIndex={-1} aria-label="What the model believes about files">
      <h3>What the model believes about files</h3>
      {views.length === 0 ? (
        <p class="dim">This window shows no lines of files.</p>
      ) : (
        <>
          <p class="dim">{changed === 0 ? "No view is from before a change that is known." : `${plural(changed, "view")} of ${views.length} ${changed === 1 ? "is" : "are"} from before a change that could not be followed.`}</p>
          <table class="beliefs">
            <thead>
              <tr><th scope="col">file</th><th scope="col">lines</th><th scope="col">known as</th><th scope="col">why</th></tr>
            </thead>
            <tbody>
              {shown.map((view, at) => {
                const [name, directory] = pathParts(view.path);
                return (
                  <tr key={at}>
                    <td>
                      <button class="link strong" onClick={() => onFile(view.path)}><bdi>{safe(name)}</bdi></button> <bdi class="dim" title={safe(view.path)}>{safe(shortDirectory(directory))}</bdi>
                    </td>
                    <td class="lines"><button class="link" onClick={() => onBlock(view.block, "sent")}>{safe(view.lines)}</button></td>
                    <td><span class={`tag grade-${view.grade}`}>{gradeNames[view.grade]}</span></td>
                    <td class="why"><bdi>{safe(view.cause ?? (view.is_written ? "" : "as it was read"))}</bdi></td>
                  </tr>
                );
              })}
            </tbody>
          </table>
          {views.length > FEW && <button class="link" onClick={() => setAll(!isAll)}>{isAll ? "Show fewer" : `Show all ${views.length}`}</button>}
        </>
      )}
    </section>
  );
}

const removedNames: Record<string, [string, string]> = {
  made: ["older rewritten block", "older rewritten blocks"],
  file: ["file read", "file reads"],
  call: ["call", "calls"],
  output: ["tool output", "tool outputs"],
  thought: ["thought", "thoughts"],
  told: ["text of the model", "texts of the model"],
  said: ["message that was said", "messages that were said"],
  other: ["other block", "other blocks"],
};

/** What a fold cut, the same texts together. */
function cuts(cut: [string, string, number][]) {
  const known = new Map<string, { what: string; hash: string; tokens: number; count: number }>();
  for (const [what, hash, tokens] of cut) {
    const one = known.get(hash) ?? { what, hash, tokens: 0, count: 0 };
    known.set(hash, { ...one, tokens: one.tokens + tokens, count: one.count + 1 });
  }
  return [...known.values()];
}

/** What left the window, and how to get it back. */
export function TakenAway({ story, onBlock, onForm, onFile, onRequest }: StoryProps) {
  const { removed, fold, lost, line } = story;
  const { kind } = useAbout();
  // A recording never passed through a gateway, which is what keeps texts for `contexture show`.
  const isKept = kind === "gateway" || kind === "store";
  const sum = removed.reduce((sum, { tokens }) => sum + tokens, 0);
  return (
    <section class="card" id="taken" tabIndex={-1} aria-label="What was taken away">
      <h3>What was taken away</h3>
      {removed.length === 0 ? (
        <p class="dim">Nothing left the window with this request.</p>
      ) : (
        <table>
          <thead><tr><th scope="col">gone from the window</th><th scope="col" class="right">tokens</th></tr></thead>
          <tbody>
            {removed.map(({ kind, count, tokens, block }) => (
              <tr key={kind}>
                <td><button class="link" onClick={() => onBlock(block, "before")}>{number(count)} × {removedNames[kind]![count === 1 ? 0 : 1]}</button></td>
                <td class="right">{number(tokens)}</td>
              </tr>
            ))}
            <tr class="sum"><td><button class="link" onClick={() => onForm("before")}>all of it, block by block</button></td><td class="right">{number(sum)}</td></tr>
          </tbody>
        </table>
      )}
      {fold && <p>{safe(because(story))}: {number(fold.before_tokens)} tokens became {number(fold.after_tokens)}, without instructions and tools.</p>}
      {fold && cuts(fold.cut).map(({ what, hash, tokens, count }) => (
        <p key={hash}>
          <span class="tag bad">cut</span> {count > 1 && `${number(count)} × `}{what === "said" ? "something that was said" : what === "told" ? "something the model said" : "the record of a call"}
          {tokens > 0 && `, ${plural(tokens, "token")}`}
          {isKept && <>: <code>contexture show {safe(hash)}</code></>}
        </p>
      ))}
      {lost && (
        <p>
          <span class="tag bad">at <button class="link" onClick={() => onRequest(lost[0])}>request {lost[0]}</button></span> the agent’s own changes did not fit in{" "}
          {lost[1].map((path, at) => <span key={path}>{at > 0 && ", "}<button class="link" onClick={() => onFile(path)}><bdi>{safe(pathParts(path)[0])}</bdi></button></span>)}
        </p>
      )}
      {line.came_tokens > line.sent_tokens && (
        <p class="dim small">
          The agent has all of it: reading a file again brings its lines back{isKept && <>, and <code>contexture show</code> prints what was cut</>}.{" "}
          <button class="link" onClick={() => onForm("came")}>Everything that is not in this window</button>.
        </p>
      )}
    </section>
  );
}

/** What the model answered. */
export function Answer({ story, onBlock }: StoryProps) {
  const { answer, line } = story;
  return (
    <section class="card" id="answer" tabIndex={-1} aria-label="What the model answered">
      <h3>What the model answered</h3>
      {answer.length === 0 && <p class="dim">{!line.is_over ? "The answer has not ended." : line.record.status >= 400 ? `There is none: the provider returned ${line.record.status}.` : "It could not be read as it came; it is known once the agent sends it back with its next request."}</p>}
      <ul class="answer">
        {answer.map(({ id, kind, name, tokens, preview }) => (
          <li key={id}>
            <button class="link" onClick={() => onBlock(id, "came")}>{kind === "call" ? <bdi>{safe(name)}</bdi> : kind === "thought" ? "thought" : "said"}</button>{" "}
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
    <section class="card" id="signals" tabIndex={-1} aria-label="Signs that something was missing">
      <h3>Signs that something was missing</h3>
      <table>
        <thead><tr><th scope="col">up to this request</th><th scope="col" class="right">times</th><th scope="col">newest at request</th></tr></thead>
        <tbody>
          {signals.map(({ kind, count, requests }) => (
            <tr key={kind}>
              <td>{signalNames[kind] ?? kind}</td>
              <td class="right">{number(count)}</td>
              <td>{requests.map((n, at) => <span key={n}>{at > 0 && ", "}<button class="link" onClick={() => onRequest(n)}>{n}</button></span>)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="dim small">
        None of them proves harm by itself: agents also read again what they see. <code>contexture receipts --compare</code> compares with conversations that are held out.
      </p>
    </section>
  );
}

/** By how much two counts of tokens differ when it is said. */
const OFF = 0.02;

/** What it cost, with the sum of the conversation. */
export function Cost({ story, conversation, onRequest, onForm }: StoryProps) {
  const { line, fold, usual } = story;
  const { usage, bill, context, is_simulated, first_byte_ms, own_us } = line.record;
  const origin = billed(is_simulated);
  const written = usage ? usage.cache_write + usage.cache_write_hour : 0;
  const counted = usage ? usage.input + usage.cache_read + written : 0;
  const isUnsendable = bill !== null && context !== null && bill.came > context;
  return (
    <section class="card" id="cost" tabIndex={-1} aria-label="What it cost">
      <h3>What it cost</h3>
      {!bill && <p class="dim">{line.is_over ? "The provider reported no usage." : "It is not billed yet."}</p>}
      {usage && bill && (
        <table>
          <thead><tr><th scope="col">request {line.n}</th><th scope="col" class="right">tokens</th><th scope="col" class="right">dollars</th><th scope="col">how known</th></tr></thead>
          <tbody>
            <tr><td><Jump onClick={() => onForm("before")}>read from the cache</Jump></td><td class="right">{number(usage.cache_read)}</td><td /><td><Mark origin={origin} /></td></tr>
            {written > 0 && <tr><td><Jump onClick={() => onForm("before")}>written to the cache</Jump></td><td class="right">{number(written)}</td><td /><td><Mark origin={origin} /></td></tr>}
            {usage.input > 0 && <tr><td><Jump onClick={() => onForm("before")}>neither</Jump></td><td class="right">{number(usage.input)}</td><td /><td><Mark origin={origin} /></td></tr>}
            <tr><td><Jump to="answer">answered</Jump></td><td class="right">{number(usage.output)}</td><td /><td><Mark origin={origin} /></td></tr>
            <tr class="sum"><td><ToBill>billed, at the plain input price</ToBill></td><td class="right">{number(bill.billed)}</td><td class="right">{story.dollars && dollars(story.dollars[0])}</td><td><Mark origin={origin} /></td></tr>
            <tr><td><Jump to="overview">the requests around it, usually</Jump></td><td class="right">{number(usual)}</td><td /><td><Mark origin={origin} /></td></tr>
            <tr>
              <td><Jump onClick={() => onForm("came")}>sent as it came ({short(bill.came)})</Jump></td>
              <td class="right">{number(bill.passed_through)}</td>
              <td class="right">{story.dollars && dollars(story.dollars[1])}</td>
              <td><Mark origin="estimated" /></td>
            </tr>
            {fold?.estimated && <tr><td><Jump to="taken">the fold, as decided</Jump></td><td class="right">{number(fold.estimated.cost)}</td><td /><td><Mark origin="estimated" /></td></tr>}
            {fold?.billed && <tr><td><Jump to="taken">the fold, as billed</Jump></td><td class="right">{number(fold.billed.cost)}</td><td /><td><Mark origin={origin} /></td></tr>}
          </tbody>
        </table>
      )}
      {usage && Math.abs(counted - line.sent_tokens) > line.sent_tokens * OFF && (
        <p class="dim small">The provider{is_simulated && " that is simulated"} counts {number(counted)} tokens in this window; by our own count, which the pictures and the budget use, it has {number(line.sent_tokens)}.</p>
      )}
      {isUnsendable && <p class="warn">It could not have been sent as it came: {short(bill.came)} tokens are above the model’s window of {short(context)}.</p>}
      {fold && (
        <p>
          Price: {number((fold.billed ?? fold.estimated)?.cost ?? 0)} billed again; it spares {number((fold.billed ?? fold.estimated)?.saves_per_request ?? 0)} with every later request.{" "}
          {fold.paid_back !== null && (fold.next === null || fold.paid_back < fold.next) ? (
            <>It was paid back at <button class="link" onClick={() => onRequest(fold.paid_back!)}>request {fold.paid_back}</button>.</>
          ) : fold.next !== null ? (
            <>It was not paid back before the next fold, at <button class="link" onClick={() => onRequest(fold.next!)}>request {fold.next}</button>.</>
          ) : (
            "It is not paid back yet."
          )}
        </p>
      )}
      <Sum conversation={conversation} />
      <p class="dim small">
        {[line.record.model && safe(line.record.model), clock(line.record.time_ms), first_byte_ms > 0 && `first byte after ${duration(first_byte_ms)}, own work ${(own_us / 1000).toFixed(1)} ms`].filter(Boolean).join(", ")}
      </p>
    </section>
  );
}

/** Leads to the bill; an export has only that of its own conversation. */
function ToBill({ children }: { children: ComponentChildren }) {
  return useAbout().kind === "export" ? <Jump to="overview">{children}</Jump> : <a href={address({ view: "bill" })}>{children}</a>;
}

/** The bill of the whole conversation, and what it would have been. */
export function Sum({ conversation }: { conversation: Conversation }) {
  const { billed: sum, passed_through, dollars: paid, unsendable, requests, simulated } = conversation;
  // Of what is shown: dollars count the answers too, tokens at the plain price do not.
  const [cost, through] = paid ?? [sum, passed_through];
  const less = through > 0 ? 1 - cost / through : 0;
  return (
    <p class="conversation-sum">
      The whole conversation cost <ToBill><b>{paid ? dollars(cost) : `${short(cost)} tokens at the plain price`}</b></ToBill> <Mark origin={billed(simulated > 0)} />; sent as it came it would have cost{" "}
      <ToBill><b>{paid ? dollars(through) : short(through)}</b></ToBill> <Mark origin="estimated" />
      {Math.abs(less) >= 0.005 && `, so this is ${percent(Math.abs(less))} ${less > 0 ? "less" : "more"}`}.
      {unsendable > 0 && <span class="warn"> {number(unsendable)} of its {plural(requests, "request")} could not have been sent as they came: they are above the model’s window.</span>}
    </p>
  );
}
