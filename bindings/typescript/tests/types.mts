// What the types promise. It is compiled and not run; each line after `@ts-expect-error` must be wrong.
import {
  ContextureError,
  Folder,
  GatewayError,
  Memory,
  countTokens,
  foldingFetch,
  gateway,
  references,
  type Bill,
  type Decision,
  type Fact,
  type Receipt,
  type Reference,
} from "contexture-cli";
import { createOpenAI, type OpenAIProvider } from "@ai-sdk/openai";
import OpenAI from "openai";
import Anthropic from "@anthropic-ai/sdk";

export async function used(): Promise<Receipt> {
  const g = await gateway({ budget: 64_000, upstream: new URL("http://127.0.0.1:9"), store: true });
  const address: string = g.openai + g.anthropic + g.url;
  const inspector: string | undefined = g.inspector;
  // @ts-expect-error: an address cannot be set.
  g.openai = address;
  // @ts-expect-error: a budget is a number.
  await gateway({ budget: "64k" });
  // @ts-expect-error: there is no such option.
  await gateway({ bugdet: 64_000 });
  const folds: readonly Decision[] = (await g.close()).folds;
  const error: ContextureError = new GatewayError(`${folds.length} ${inspector}`, "a hint");
  const hint: string | undefined = error.hint;
  return hint === undefined ? g.receipt : Promise.reject(error);
}

export async function folded(): Promise<Bill> {
  using folder = new Folder({ budget: 64_000, prices: [{ name: "gpt", input: 1.25 }], policy: { tools: ["plan"] } });
  const request = { model: "gpt-5", messages: [{ role: "user" as const, content: "hello" }] };
  const made = await folder.request(request);
  const same: typeof request = made.json();
  const decided: readonly Decision[] = made.decisions;
  const format: "chat" | "messages" | "responses" | "gemini" = made.format;
  // @ts-expect-error: a budget is a number.
  new Folder({ budget: "64k" });
  // @ts-expect-error: there is no such format.
  new Folder({ format: "telegram" });
  // @ts-expect-error: a request is bytes, a text or an object.
  await folder.request(5);
  // @ts-expect-error: what was decided cannot be set.
  made.isChanged = false;
  const other: Folder = Folder.restore(folder.snapshot(), { baseDir: "." });
  other.refused(made, { originalWasAccepted: format === "chat" && same === request && decided.length > 0 });
  return folder.usage({ prompt_tokens: countTokens("hello") }, made);
}

export async function remembered(): Promise<Fact[]> {
  await using memory = await Memory.open("memory.db", { user: "ann" });
  const found: Reference[] = await references("#a.md", ".");
  await memory.importSession([{ role: "user", content: "hello", at: new Date() }], { thread: `${found.length}` });
  const at: number | undefined = (await memory.search("hello")).passages[0]?.atMs;
  // @ts-expect-error: a memory is opened, not made.
  new Memory();
  return memory.facts({ withPast: at === undefined });
}

export function folding(): [OpenAIProvider, OpenAI, Anthropic] {
  const fetch = foldingFetch({ budget: 64_000, store: "folds", policy: { tools: ["plan"] } });
  // @ts-expect-error: the format is that of the path.
  foldingFetch({ format: "chat" });
  return [createOpenAI({ fetch }), new OpenAI({ fetch }), new Anthropic({ fetch })];
}
