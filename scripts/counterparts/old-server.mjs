// A server made with the first line of the official TypeScript library, which begins with a handshake: `http PORT`, with a
// session, or over pipes.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { z } from "zod";

const text = (text) => ({ content: [{ type: "text", text }] });
const server = new McpServer({ name: "counterpart", version: "1.0.0" });
server.registerTool(
  "add",
  { inputSchema: { a: z.number(), b: z.number() }, outputSchema: { total: z.number() } },
  async ({ a, b }) => ({ ...text(`{"total":${a + b}}`), structuredContent: { total: a + b } }),
);
server.registerTool("order", { description: "Asks which tea." }, async () => {
  const properties = { kind: { type: "string" }, cups: { type: "integer" } };
  const requestedSchema = { type: "object", properties, required: ["kind", "cups"] };
  const said = await server.server.elicitInput({ message: "Which tea?", requestedSchema });
  return text(said.action === "accept" ? `${said.content.cups} cups of ${said.content.kind}` : `no tea: ${said.action}`);
});
server.registerTool("slowly", { description: "Says how far it is." }, async ({ _meta, sendNotification }) => {
  for (let step = 0; step < 3 && _meta?.progressToken !== undefined; step++) {
    const params = { progressToken: _meta.progressToken, progress: step, total: 3, message: `step ${step}` };
    await sendNotification({ method: "notifications/progress", params });
  }
  return text("done slowly");
});
server.registerTool("fail", { description: "Fails." }, async () => {
  throw new Error("this always fails");
});
if (process.argv[2] === "http") {
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID });
  await server.connect(transport);
  createServer((request, response) => transport.handleRequest(request, response)).listen(
    Number(process.argv[3]),
    "127.0.0.1",
  );
} else {
  await server.connect(new StdioServerTransport());
}
