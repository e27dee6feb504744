// The bill by conversation, day and model.

import { address, go } from "./route";
import { Mark, billed } from "./mark";
import { dollars, number, percent, plural, safe } from "./text";
import type { BillLine } from "./types";
import { useData, useLoaded } from "./use";

const divisions = ["conversation", "day", "model"];

export function Bill({ by, news }: { by: string; news: number }) {
  const data = useData();
  const bill = useLoaded(() => data.bill(by), [by, news]);
  return (
    <div class="sheet wide">
      <div class="toolbar">
        <h1>Bill</h1>
        <div class="segments" role="group" aria-label="Divided by">
          {divisions.map((name) => (
            <button key={name} aria-pressed={by === name} onClick={() => go({ view: "bill", by: name }, true)}>
              by {name}
            </button>
          ))}
        </div>
      </div>
      {bill.error && <p class="note bad">{bill.error}</p>}
      {bill.value && bill.value.unread > 0 && (
        <p>
          {plural(bill.value.unread, "recording")} of {bill.value.conversations} {bill.value.unread === 1 ? "is" : "are"} not read yet and not counted here. <button onClick={() => void data.openAll()}>Read all</button>
        </p>
      )}
      {bill.value && <Table lines={bill.value.items} by={by} />}
      <p class="dim">
        Billed is in tokens at the plain input price: <Mark origin="reported" /> by the provider’s own figures, or <Mark origin="simulated" /> for recordings. What the same requests would have cost as they came (pass-through) is <Mark origin="estimated" />.
      </p>
    </div>
  );
}

/** How much less was paid: of the dollars where they are known, which count the answers too, as everywhere on the page. */
function less({ billed, passed_through, dollars }: Pick<BillLine["receipt"], "billed" | "passed_through" | "dollars">): string {
  const [cost, through] = dollars ?? [billed, passed_through];
  return through > 0 ? percent(1 - cost / through) : "";
}

function Table({ lines, by }: { lines: BillLine[]; by: string }) {
  const sum = (pick: (line: BillLine) => number) => lines.reduce((sum, line) => sum + pick(line), 0);
  const isPriced = lines.length > 0 && lines.every((line) => line.receipt.dollars);
  const paid: [number, number] | null = isPriced ? [sum((line) => line.receipt.dollars![0]), sum((line) => line.receipt.dollars![1])] : null;
  return (
    <table>
      <caption>What was billed, by {by}</caption>
      <thead>
        <tr>
          <th scope="col">{by}</th>
          <th scope="col" class="right">requests</th>
          <th scope="col" class="right">came</th>
          <th scope="col" class="right">sent</th>
          <th scope="col" class="right">cached</th>
          <th scope="col" class="right">billed</th>
          <th scope="col" class="right">per request</th>
          <th scope="col" class="right">pass-through</th>
          <th scope="col" class="right">less</th>
          <th scope="col" class="right">dollars</th>
          <th scope="col">how known</th>
          <th scope="col">dearest requests</th>
        </tr>
      </thead>
      <tbody>
        {lines.map((line) => ({ ...line, line })).map(({ name, title, receipt, dearest, line }) => (
          <tr key={name}>
            <td>
              {by === "conversation" ? (
                <a href={address({ conversation: name })}><bdi>{safe(title || name)}</bdi></a>
              ) : (
                <bdi>{safe(title)}</bdi>
              )}
            </td>
            <td class="right">{number(receipt.requests)}</td>
            <td class="right">{number(receipt.came)}</td>
            <td class="right">{number(receipt.sent)}</td>
            <td class="right">{receipt.sent > 0 && percent(receipt.cache_read / receipt.sent)}</td>
            <td class="right">{number(receipt.billed)}</td>
            <td class="right">{number(receipt.billed / Math.max(1, receipt.requests))}</td>
            <td class="right">{number(receipt.passed_through)}</td>
            <td class="right">{less(receipt)}</td>
            <td class="right">{receipt.dollars && `${dollars(receipt.dollars[0])} instead of ${dollars(receipt.dollars[1])}`}</td>
            <td><Mark origin={billed(line.simulated > 0)} />{line.unsendable > 0 && <span class="warn"> {number(line.unsendable)} could not have been sent as they came</span>}</td>
            <td class="dearest">
              {dearest.map((dear) => (
                <a key={dear.n} href={address({ conversation: dear.conversation, n: dear.n })} title={`${number(dear.billed)} billed`}>
                  {dear.n}
                </a>
              ))}
            </td>
          </tr>
        ))}
      </tbody>
      <tfoot>
        <tr class="sum">
          <th scope="row">all</th>
          <td class="right">{number(sum((line) => line.receipt.requests))}</td>
          <td class="right">{number(sum((line) => line.receipt.came))}</td>
          <td class="right">{number(sum((line) => line.receipt.sent))}</td>
          <td class="right">{sum((line) => line.receipt.sent) > 0 && percent(sum((line) => line.receipt.cache_read) / sum((line) => line.receipt.sent))}</td>
          <td class="right">{number(sum((line) => line.receipt.billed))}</td>
          <td class="right">{number(sum((line) => line.receipt.billed) / Math.max(1, sum((line) => line.receipt.requests)))}</td>
          <td class="right">{number(sum((line) => line.receipt.passed_through))}</td>
          <td class="right">{less({ billed: sum((line) => line.receipt.billed), passed_through: sum((line) => line.receipt.passed_through), dollars: paid })}</td>
          <td class="right">{paid && `${dollars(paid[0])} instead of ${dollars(paid[1])}`}</td>
          <td />
          <td />
        </tr>
      </tfoot>
    </table>
  );
}
