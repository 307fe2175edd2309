import { type Usage, usdText, visible } from "@sluice/core";

const LONGEST_LINE = 240;

/** One line of text from anywhere: nothing in it moves the cursor, line breaks are spaces, what is too long is cut. */
export function oneLine(text: string, longest = LONGEST_LINE): string {
  const short = text.length > longest ? `${text.slice(0, longest).toWellFormed()}…` : text;
  return visible(short.replaceAll(/\s*\n\s*/g, " "));
}

export function count(number: number, one: string, many = `${one}s`): string {
  return `${grouped(number)} ${number === 1 ? one : many}`;
}

/** Tokens and money. Models that cost nothing are not said to cost it; what nobody knows is. */
export function spending({ inputTokens, outputTokens, costUsd = 0, unpricedCalls, unmeteredCalls }: Usage): string {
  const parts = [`${grouped(inputTokens)} tokens in`, `${grouped(outputTokens)} out`];
  if (costUsd > 0) parts.push(usdText(costUsd));
  if (unpricedCalls !== undefined)
    parts.push(costUsd > 0 ? `${count(unpricedCalls, "call")} of unknown price` : "price unknown");
  if (unmeteredCalls !== undefined) parts.push(`${count(unmeteredCalls, "call")} of unknown use`);
  return parts.join(", ");
}

/** Why a run came to nothing, with the code where the words do not say it. */
export function withCode({ code, message }: { readonly code: string; readonly message: string }): string {
  return SAID_ALREADY.has(code) || message.includes(`(${code})`) ? message : `${message} (${code})`;
}

/** Codes that say nothing which the words do not. */
const SAID_ALREADY: ReadonlySet<string> = new Set(["cancelled", "usage"]);

export function milliseconds(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** A point in time, to the second, in UTC: the same in every log. */
export function moment(epochMs: number): string {
  return new Date(epochMs)
    .toISOString()
    .replace("T", " ")
    .replace(/\.\d+Z$/, "Z");
}

/** Rows as columns, each as wide as its widest cell but the last, which is as long as it is. */
export function table(rows: readonly (readonly string[])[]): readonly string[] {
  const widths: number[] = [];
  for (const row of rows) for (const [at, cell] of row.entries()) widths[at] = Math.max(widths[at] ?? 0, cell.length);
  return rows.map((row) =>
    row
      .map((cell, at) => (at === row.length - 1 ? cell : cell.padEnd(widths[at] ?? 0)))
      .join("  ")
      .trimEnd(),
  );
}

export function indented(text: string, by = "  "): string {
  return text
    .split("\n")
    .map((line) => by + line)
    .join("\n");
}

function grouped(number: number): string {
  return number.toLocaleString("en-US");
}
