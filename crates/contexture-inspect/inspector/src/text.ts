// Texts and numbers as people read them.

import type { Cost, Part } from "./types";

const thousands = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export function number(value: number): string {
  return thousands.format(Math.round(value)).replaceAll(",", "\u202f");
}

/** A number in few letters: 940, 4.1k, 41k, 1.2M. */
export function short(value: number): string {
  if (value < 1000) return String(Math.round(value));
  if (value < 9950) return (value / 1000).toFixed(1) + "k";
  if (value < 999_500) return Math.round(value / 1000) + "k";
  return (value / 1_000_000).toFixed(1) + "M";
}

export function dollars(value: number): string {
  return "$" + (value >= 100 ? number(value) : value.toFixed(value >= 0.01 ? 2 : value >= 0.001 ? 3 : 4));
}

/** What something cost: dollars where prices are known. */
export function price({ dollars: known, billed }: Cost): string {
  return known === null ? `${short(billed)} tokens at the plain price` : known === 0 ? "$0" : dollars(known);
}

/** By how much less was paid, as a share; negative if it was more. */
export function saved([paid, through]: [number, number]): number {
  return through > 0 ? 1 - paid / through : 0;
}

export function bytes(value: number): string {
  if (value < 1024) return `${value} bytes`;
  return value < 1 << 20 ? `${(value / 1024).toFixed(1)} kB` : `${(value / (1 << 20)).toFixed(1)} MB`;
}

export function duration(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

export function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

export function clock(ms: number): string {
  if (ms === 0) return "";
  return new Date(ms).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
}

/** A day and a time; nothing where it is not known. */
export function when(ms: number): string {
  if (ms === 0) return "";
  const date = new Date(ms);
  const isToday = date.toDateString() === new Date().toDateString();
  const day = date.toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric" });
  const time = date.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  return isToday ? `today, ${time}` : `${day}, ${time}`;
}

export function plural(count: number, one: string, many = one + "s"): string {
  return `${number(count)} ${count === 1 ? one : many}`;
}

/** Characters that are not seen or that change how the rest is read: shown as signs instead of being obeyed. The same as
 * `is_invisible` of the core, control characters, and the separators of lines and paragraphs. */
const unseen =
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;

export function safe(text: string): string {
  return text.replace(unseen, (letter) => {
    const code = letter.codePointAt(0)!;
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    return code === 0x7f ? "\u2421" : `\u27e8U+${code.toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
  });
}

/** The parts of a window, in the order in which they are shown. */
export const parts: Part[] = ["instructions", "project_rules", "people", "agent", "files", "calls", "newest"];

export const partNames: Record<Part, string> = {
  instructions: "Instructions",
  project_rules: "AGENTS.md",
  people: "People",
  agent: "Agent",
  files: "Files",
  calls: "Calls",
  newest: "Newest",
};

/** What Contexture wrote, by what it is. */
export const madeNames: Record<string, string> = {
  views: "Rewritten files",
  account: "Earlier conversation",
  records: "Rewritten calls",
  digest: "Rewritten",
  echoes: "Brought back",
  brought_back: "Brought back",
  references: "Named files",
  note: "Note",
  cut: "Cut",
  layer: "Memory",
  summary: "Summary",
};

/** The name of what a block is, as people know it. */
export function kindOf({ kind, part, made }: { kind: string; part?: Part; made?: string }): string {
  if (kind === "call") return "Call";
  if (kind === "thought") return "Thought";
  if (kind === "compaction") return "The provider’s summary";
  return (made && madeNames[made]) || (part ? partNames[part] : "");
}

/** The last part of a path, and what comes before it. */
export function pathParts(path: string): [string, string] {
  const at = Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\"));
  return [path.slice(at + 1), path.slice(0, Math.max(0, at))];
}

/** The longest directory in which most of some paths are, with its last separator. */
export function commonDirectory(paths: string[]): string {
  const counts = new Map<string, number>();
  for (const path of paths) for (let at = path.indexOf("/", 1); at > 0; at = path.indexOf("/", at + 1)) counts.set(path.slice(0, at + 1), (counts.get(path.slice(0, at + 1)) ?? 0) + 1);
  return [...counts].filter(([, count]) => count > 1 && 2 * count > paths.length).reduce((most, [directory]) => (directory.length > most.length ? directory : most), "");
}

export const stateNames: Record<string, string> = {
  kept: "as it came",
  shortened: "shortened",
  made: "written by Contexture",
  left_out: "left out",
  same: "unchanged",
  behind: "billed again",
  new: "new",
  gone: "gone",
};

export const gradeNames: Record<string, string> = {
  verified: "verified",
  seen: "as seen",
  changed: "changed since",
  overtaken: "overtaken",
  read_again: "read again",
  deleted: "deleted",
  unknown: "no line known",
};

/** A range of numbers in few letters. */
export function range([first, last]: [number, number]): string {
  return first === last ? String(first) : `${first}–${last}`;
}
