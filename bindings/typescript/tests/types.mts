// What the types promise. It is compiled and not run; each line after `@ts-expect-error` must be wrong.
import { ContextureError, GatewayError, gateway, type Decision, type Receipt } from "contexture";

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
