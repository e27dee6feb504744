// A server made with the second line of the official TypeScript library, for the client of `contexture chat`: `http PORT`,
// or over pipes.
import { createServer } from "node:http";
import { Readable } from "node:stream";
import { McpServer, acceptedContent, createMcpHandler, inputRequired } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

const text = (text) => ({ content: [{ type: "text", text }] });

const make = () => {
  const server = new McpServer({ name: "counterpart", version: "1.0.0" });
  const numbers = z.object({ a: z.number(), b: z.number() });
  server.registerTool(
    "add",
    { description: "Adds two numbers.", inputSchema: numbers, outputSchema: z.object({ total: z.number() }) },
    async ({ a, b }) => ({ ...text(`{"total":${a + b}}`), structuredContent: { total: a + b } }),
  );
  const tea = z.object({ kind: z.string(), cups: z.number().int() });
  server.registerTool("order", { description: "Asks which tea." }, async (ctx) => {
    const said = ctx.mcpReq.inputResponses?.tea;
    if (!said) {
      const asked = inputRequired.elicit({ message: "Which tea?", requestedSchema: tea });
      return inputRequired({ inputRequests: { tea: asked }, requestState: "asked" });
    }
    const chosen = acceptedContent(ctx.mcpReq.inputResponses, "tea", tea);
    return text(chosen ? `${chosen.cups} cups of ${chosen.kind}` : `no tea: ${said.action}`);
  });
  server.registerTool("slowly", { description: "Says how far it is." }, async (ctx) => {
    const token = ctx.mcpReq._meta?.progressToken;
    for (let step = 0; step < 3 && token !== undefined; step++) {
      const params = { progressToken: token, progress: step, total: 3, message: `step ${step}` };
      await ctx.mcpReq.notify({ method: "notifications/progress", params });
    }
    return text("done slowly");
  });
  server.registerTool("fail", { description: "Fails." }, async () => {
    throw new Error("this always fails");
  });
  return server;
};
if (process.argv[2] === "http") {
  const handler = createMcpHandler(make);
  createServer(async (request, response) => {
    const body = request.method === "POST" ? Readable.toWeb(request) : undefined;
    const init = { method: request.method, headers: request.headers, body, duplex: "half" };
    const said = await handler.fetch(new Request(`http://${request.headers.host}${request.url}`, init));
    response.writeHead(said.status, Object.fromEntries(said.headers));
    if (said.body) Readable.fromWeb(said.body).pipe(response);
    else response.end();
  }).listen(Number(process.argv[3]), "127.0.0.1");
} else {
  serveStdio(make);
}
