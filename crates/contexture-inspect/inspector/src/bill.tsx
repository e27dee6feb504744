// The bill by session, day and model.

import { address, go } from "./route";
import { dollars, number, percent, plural, safe, saved, short } from "./text";
import { Top } from "./top";
import type { BillLine } from "./types";
import { useData, useLoaded } from "./use";

const divisions: [string, string][] = [["conversation", "session"], ["day", "day"], ["model", "model"]];

export function Bill({ by, news }: { by: string; news: number }) {
  const data = useData();
  const bill = useLoaded(async () => ({ by, page: await data.bill(by) }), [by, news]);
  const page = bill.value?.page;
  return (
    <>
      <Top />
      <main class="sheet wide">
        <div class="toolbar">
          <h1>Bill</h1>
          <div class="segments" role="group" aria-label="Divided by">
            {divisions.map(([name, label]) => (
              <button key={name} aria-pressed={by === name} onClick={() => go({ view: "bill", by: name }, true)}>by {label}</button>
            ))}
          </div>
        </div>
        {bill.error && <p class="note bad">{bill.error}</p>}
        {page && page.unread > 0 && (
          <p>
            {plural(page.unread, "recording")} of {page.conversations} {page.unread === 1 ? "is" : "are"} not read yet and not counted here. <button onClick={() => void data.openAll()}>Read all</button>
          </p>
        )}
        {page && <Table lines={page.items} by={bill.value!.by} />}
        <p class="dim small">
          Paid is what the provider reported, or for recordings a simulated provider; the same requests as they came (pass-through) are estimated. Tokens are as the provider counts them.
        </p>
      </main>
    </>
  );
}

/** What was paid and what it would have been: in dollars where these are known, else in tokens at the plain input price. */
function sums({ billed, passed_through, dollars: known }: BillLine["receipt"]): [string, string, string] {
  const pair: [number, number] = known ?? [billed, passed_through];
  const text = (sum: number) => (known ? dollars(sum) : short(sum));
  return [text(pair[0]), text(pair[1]), pair[1] > 0 ? percent(saved(pair)) : ""];
}

function Table({ lines, by }: { lines: BillLine[]; by: string }) {
  const sum = (pick: (line: BillLine) => number) => lines.reduce((sum, line) => sum + pick(line), 0);
  const isPriced = lines.length > 0 && lines.every((line) => line.receipt.dollars);
  const total = {
    requests: sum((line) => line.receipt.requests), sent: sum((line) => line.receipt.sent), cache_read: sum((line) => line.receipt.cache_read),
    billed: sum((line) => line.receipt.billed), passed_through: sum((line) => line.receipt.passed_through),
    dollars: isPriced ? ([sum((line) => line.receipt.dollars![0]), sum((line) => line.receipt.dollars![1])] as [number, number]) : null,
  };
  return (
    <table class="bill">
      <caption class="unseen">What was paid, by {by}</caption>
      <thead>
        <tr>
          <th scope="col">{by === "conversation" ? "session" : by}</th>
          <th scope="col" class="right">paid</th>
          <th scope="col" class="right">as it came</th>
          <th scope="col" class="right">saved</th>
          <th scope="col" class="right wide">requests</th>
          <th scope="col" class="right wide">tokens sent</th>
          <th scope="col" class="right wide">from the cache</th>
          <th scope="col" class="wide">dearest requests</th>
        </tr>
      </thead>
      <tbody>
        {lines.map(({ name, title, receipt, dearest }) => {
          const [paid, through, less] = sums(receipt);
          return (
            <tr key={name}>
              <td>
                {by === "conversation" ? <a href={address({ conversation: name })}><bdi>{safe(title || name)}</bdi></a> : <bdi>{safe(title)}</bdi>}
              </td>
              <td class="right strong">{paid}</td>
              <td class="right dim">{through}</td>
              <td class="right">{less}</td>
              <td class="right wide">{number(receipt.requests)}</td>
              <td class="right wide">{short(receipt.sent)}</td>
              <td class="right wide">{receipt.sent > 0 && percent(receipt.cache_read / receipt.sent)}</td>
              <td class="dearest wide">{dearest.map((dear) => <a key={dear.n} href={address({ conversation: dear.conversation, n: dear.n })}>{dear.n}</a>)}</td>
            </tr>
          );
        })}
      </tbody>
      <tfoot>
        <tr class="sum">
          <th scope="row">all</th>
          {sums(total as BillLine["receipt"]).map((text, at) => <td key={at} class="right">{text}</td>)}
          <td class="right wide">{number(total.requests)}</td>
          <td class="right wide">{short(total.sent)}</td>
          <td class="right wide">{total.sent > 0 && percent(total.cache_read / total.sent)}</td>
          <td class="wide" />
        </tr>
      </tfoot>
    </table>
  );
}
