// An agent in TypeScript, as in docs/typescript.md: `await using` ends the gateway however the block is left.
import OpenAI from "openai";
import { gateway, type Gateway } from "contexture-cli";

async function ask(): Promise<Gateway> {
  await using g = await gateway({ budget: 64_000, upstream: process.env["PROVIDER"]! });
  const client = new OpenAI({ baseURL: g.openai, apiKey: "sk-of-the-user" });
  const answer = await client.chat.completions.create({
    model: "gpt-5",
    messages: [{ role: "user", content: "hello" }],
  });
  console.log(answer.choices[0]?.message.content);
  return g;
}

const ended = await ask();
console.log(ended.receipt.requests);
