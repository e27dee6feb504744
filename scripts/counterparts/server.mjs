// A server made with the second line of the official TypeScript library, for the client of `contexture chat`.
import { McpServer, acceptedContent, inputRequired } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

const text = (text) => ({ content: [{ type: "text", text }] });

serveStdio(() => {
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
});
