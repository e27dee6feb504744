// The files that a conversation is about, and what happened to each.

import { address } from "./route";
import { commonDirectory, gradeNames, pathParts, plural, safe } from "./text";
import type { FileLine } from "./types";
import { useData, useLoaded } from "./use";

interface Props {
  id: string;
  path: string | undefined;
  total: number;
  onPath: (path: string | undefined) => void;
  onBlock: (n: number, block: number) => void;
}

export function Files({ id, path, total, onPath, onBlock }: Props) {
  const data = useData();
  const files = useLoaded(() => data.files(id), [id, total]);
  if (path !== undefined) return <History id={id} path={path} total={total} onPath={onPath} onBlock={onBlock} />;
  if (files.error) return <p class="note bad">{files.error}</p>;
  if (!files.value) return null;
  const common = commonDirectory(files.value.map(({ path }) => path));
  if (files.value.length === 0) return <p class="note">No call of this conversation read or changed a file.</p>;
  return (
    <div class="sheet">
      <table>
        <caption>Files as far as the agent’s own calls tell, those in use last first{common && <>; where no other place is said, in <bdi class="path">{safe(common)}</bdi></>}</caption>
        <thead>
          <tr>
            <th scope="col">file</th>
            <th scope="col">known</th>
            <th scope="col">why not better</th>
            <th scope="col" class="right">read</th>
            <th scope="col" class="right">changed</th>
            <th scope="col" class="right nowrap">last at request</th>
          </tr>
        </thead>
        <tbody>
          {files.value.map((file) => (
            <tr key={file.path}>
              <td>
                <Path path={file.path} common={common} onPath={onPath} />
              </td>
              <td title={file.reason}>
                <Graded file={file} />{" "}
                <span class="dim">{file.lines > 0 && (file.is_whole ? `all ${plural(file.lines, "line")}` : plural(file.lines, "line"))}</span>
              </td>
              <td class="why"><bdi>{safe(file.reason)}</bdi></td>
              <td class="right">{file.reads}</td>
              <td class="right">{file.changes}</td>
              <td class="right">{file.last > 0 && <a href={address({ conversation: id, n: file.last })}>{file.last}</a>}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** A file by its name, and its directory as far as others have another one. */
function Path({ path, common, onPath }: { path: string; common: string; onPath: Props["onPath"] }) {
  const [name, directory] = pathParts(path.startsWith(common) ? path.slice(common.length) : path);
  return (
    <>
      <button class="link strong" title={safe(path)} onClick={() => onPath(path)}><bdi>{safe(name)}</bdi></button> <bdi class="dim small">{safe(directory)}</bdi>
    </>
  );
}

/** What is known of how many lines of a file. */
function Graded({ file }: { file: FileLine }) {
  const grades = (["changed", "seen", "verified"] as const).filter((grade) => file.graded?.[grade]);
  if (file.grade === "deleted" || grades.length < 2) return <span class={`tag grade-${file.grade}`}>{gradeNames[file.grade]}</span>;
  return (
    <>
      {grades.map((grade) => (
        <span key={grade} class={`tag grade-${grade}`}>{file.graded[grade]} {gradeNames[grade]}</span>
      ))}
    </>
  );
}

function History({ id, path, total, onPath, onBlock }: Props & { path: string }) {
  const data = useData();
  const events = useLoaded(() => data.history(id, path), [id, path, total]);
  const file = useLoaded(() => data.files(id), [id, total]).value?.find((file) => file.path === path);
  return (
    <div class="sheet">
      <button class="link" onClick={() => onPath(undefined)}>← all files</button>
      <h2 class="path"><bdi>{safe(path)}</bdi></h2>
      {file && (
        <p>
          <span class={`tag grade-${file.grade}`}>{gradeNames[file.grade]}</span>{" "}
          <span class="dim">{file.reason ? safe(file.reason) : "as far as the agent’s own calls tell"}</span>
        </p>
      )}
      {events.error && <p class="note bad">{events.error}</p>}
      <ol class="history" aria-label="History">
        {events.value?.map((event, at) => (
          <li key={at} class={`event-${event.what}`}>
            <b>{event.what.replace("_", " ")}</b> <bdi>{safe(event.detail)}</bdi>
            <button class="link" onClick={() => onBlock(event.n, event.block)}>request {event.n}</button>
          </li>
        ))}
      </ol>
    </div>
  );
}
