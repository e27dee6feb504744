// Tools by what they put into the windows, and by what declaring them costs.

import { dollars, number, percent, plural, safe, short } from "./text";
import type { ToolLine } from "./types";
import { useData, useLoaded } from "./use";

interface Props {
  id: string;
  total: number;
  onBlock: (n: number, block: number) => void;
}

const fills = (tool: ToolLine) => tool.carried + tool.tokens * tool.requests;

export function Tools({ id, total, onBlock }: Props) {
  const data = useData();
  const tools = useLoaded(() => data.tools(id), [id, total]);
  if (tools.error) return <p class="note bad">{tools.error}</p>;
  if (!tools.value) return null;
  if (tools.value.length === 0) return <p class="note">No tools are declared or called, or the recording does not say which.</p>;
  const sum = tools.value.reduce((sum, tool) => sum + fills(tool), 0);
  return (
    <div class="sheet">
      <Summary tools={tools.value} sum={sum} onBlock={onBlock} />
      <Table tools={tools.value} sum={sum} onBlock={onBlock} />
      <p class="dim small">
        Carried is what its calls, outputs and declaration fill of all windows together: their tokens, counted in every request in which they were sent.
      </p>
    </div>
  );
}

/** The name of a tool, which leads to its declaration, or else to its largest output. */
function Name({ tool, onBlock }: { tool: ToolLine; onBlock: Props["onBlock"] }) {
  const [block, n] = tool.block > 0 ? [tool.block, 1] : (tool.largest ?? [0, 0]);
  const name = <bdi>{safe(tool.name)}</bdi>;
  return block > 0 ? <button class="link" onClick={() => onBlock(n, block)}>{name}</button> : name;
}

function Summary({ tools, sum, onBlock }: { tools: ToolLine[]; sum: number; onBlock: Props["onBlock"] }) {
  const most = tools[0]!;
  const idle = tools.filter((tool) => tool.calls === 0 && tool.tokens > 0);
  const add = (pick: (tool: ToolLine) => number) => idle.reduce((sum, tool) => sum + pick(tool), 0);
  const price = idle.length > 0 && idle.every((tool) => tool.dollars !== undefined) ? add((tool) => tool.dollars!) : 0;
  return (
    <p>
      {fills(most) > 0 && (
        <>
          <b><Name tool={most} onBlock={onBlock} /></b> fills the most: {percent(fills(most) / Math.max(1, sum))} of what tools put into the windows, {plural(most.calls, "call")} with {short(most.output_tokens)} tokens of output.{" "}
        </>
      )}
      {idle.length > 0 && (
        <>
          <b>{plural(idle.length, "tool")}</b> of {tools.length} {idle.length === 1 ? "was" : "were"} never called: {number(add((tool) => tool.tokens))} tokens in every request{price > 0 && `, about ${dollars(price)} so far`}.
        </>
      )}
    </p>
  );
}

function Table({ tools, sum, onBlock }: { tools: ToolLine[]; sum: number; onBlock: Props["onBlock"] }) {
  return (
    <table>
      <caption>Tools, those that fill the most first</caption>
      <thead>
        <tr>
          <th scope="col">tool</th>
          <th scope="col" class="right">calls</th>
          <th scope="col" class="right">output</th>
          <th scope="col" class="right">declared</th>
          <th scope="col" class="right">carried</th>
          <th scope="col" class="right">share</th>
          <th scope="col">largest output</th>
        </tr>
      </thead>
      <tbody>
        {tools.map((tool) => (
          <tr key={tool.name} class={tool.calls === 0 ? "idle" : ""}>
            <td><Name tool={tool} onBlock={onBlock} /></td>
            <td class="right">{tool.calls === 0 ? "never" : number(tool.calls)}</td>
            <td class="right">{number(tool.output_tokens)}</td>
            <td class="right">{number(tool.tokens)}</td>
            <td class="right">{number(fills(tool))}</td>
            <td class="right">{sum > 0 && percent(fills(tool) / sum)}</td>
            <td>{tool.largest && <button class="link" onClick={() => onBlock(tool.largest![1], tool.largest![0])}>{short(tool.largest[2])}, request {tool.largest[1]}</button>}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
