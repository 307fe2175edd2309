import type { Json } from "@sluice/core";
import { redactJson, visible } from "@sluice/core/runtime";

/** Common lines before and after the difference. */
const CONTEXT = 2;
/** Lines shown per side. */
const MAX_LINES = 20;
const LONGEST_LINE = 160;
/** Characters of a long line before the first differing one. */
const BEFORE = 60;

/** A diff of two values: `-` for the recorded lines, `+` for the current ones, redacted and with control characters escaped. */
export function differenceLines(recorded: Json | undefined, now: Json | undefined): readonly string[] {
  const [before, after] = [linesOf(recorded), linesOf(now)];
  if (before.join("\n") === after.join("\n")) return ["  (the difference is not shown because it looks like a secret)"];
  const start = sameCount(before, after);
  const end = sameCount(before.slice(start).toReversed(), after.slice(start).toReversed());
  const [was, is] = [before.slice(start, before.length - end), after.slice(start, after.length - end)];
  const column = columnOf(was[0] ?? "", is[0] ?? "");
  const common = (line: string): string => `    ${clip(line, 0)}`;
  return [
    ...before.slice(Math.max(0, start - CONTEXT), start).map(common),
    ...side("-", was, column),
    ...side("+", is, column),
    ...before.slice(before.length - end, before.length - end + CONTEXT).map(common),
  ];
}

function side(sign: "-" | "+", lines: readonly string[], column: number): readonly string[] {
  const shown = lines.slice(0, MAX_LINES).map((line, index) => `  ${sign} ${clip(line, index === 0 ? column : 0)}`);
  const left = lines.length - shown.length;
  return left === 0 ? shown : [...shown, `  ${sign} … ${left} more lines`];
}

function linesOf(value: Json | undefined): readonly string[] {
  if (value === undefined) return ["(nothing)"];
  const safe = redactJson(value);
  return visible(typeof safe === "string" ? safe : JSON.stringify(safe, null, 2)).split("\n");
}

function sameCount(a: readonly string[], b: readonly string[]): number {
  const other = a.findIndex((line, index) => line !== b[index]);
  return other === -1 ? Math.min(a.length, b.length) : other;
}

function columnOf(a: string, b: string): number {
  let at = 0;
  while (at < a.length && a[at] === b[at]) at += 1;
  return at;
}

function clip(line: string, column: number): string {
  const start = line.length <= LONGEST_LINE ? 0 : Math.max(0, column - BEFORE);
  const part = line.slice(start, start + LONGEST_LINE);
  return `${start > 0 ? "…" : ""}${part.toWellFormed()}${start + LONGEST_LINE < line.length ? "…" : ""}`;
}
