// Tools that are declared, and what declaring them costs.

import { dollars, number, plural, safe } from "./text";
import { useData, useLoaded } from "./use";

export function Tools({ id, total, onBlock }: { id: string; total: number; onBlock: (n: number, block: number) => void }) {
  const data = useData();
  const tools = useLoaded(() => data.tools(id), [id, total]);
  if (tools.error) return <p class="note bad">{tools.error}</p>;
  if (!tools.value) return null;
  if (tools.value.length === 0) return <p class="note">No tools are declared, or the recording does not say which.</p>;
  const idle = tools.value.filter((tool) => tool.calls === 0);
  const sum = (pick: (tool: (typeof idle)[number]) => number) => idle.reduce((sum, tool) => sum + pick(tool), 0);
  const price = idle.every((tool) => tool.dollars !== undefined) ? sum((tool) => tool.dollars!) : null;
  return (
    <div class="sheet">
      <p>
        {idle.length === 0 ? (
          "Every declared tool was called."
        ) : (
          <>
            <b>{plural(idle.length, "tool")}</b> of {tools.value.length} {idle.length === 1 ? "was" : "were"} never called:{" "}
            {number(sum((tool) => tool.tokens))} tokens in every request, {number(sum((tool) => tool.billed))} billed so far
            {price !== null && price > 0 && `, about ${dollars(price)}`}.
          </>
        )}
      </p>
      <table>
        <caption>Tools, those never called first</caption>
        <thead>
          <tr>
            <th scope="col">tool</th>
            <th scope="col" class="right">calls</th>
            <th scope="col" class="right">tokens</th>
            <th scope="col" class="right">requests</th>
            <th scope="col" class="right">billed</th>
          </tr>
        </thead>
        <tbody>
          {tools.value.map((tool) => (
            <tr key={tool.block} class={tool.calls === 0 ? "idle" : ""}>
              <td>
                <button class="link" onClick={() => onBlock(1, tool.block)}><bdi>{safe(tool.name)}</bdi></button>
              </td>
              <td class="right">{tool.calls === 0 ? "never" : tool.calls}</td>
              <td class="right">{number(tool.tokens)}</td>
              <td class="right">{number(tool.requests)}</td>
              <td class="right">{number(tool.billed)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
