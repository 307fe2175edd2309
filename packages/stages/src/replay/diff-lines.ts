import type { Json } from "@sluice/core";
import { redactJson, visible } from "@sluice/core/runtime";
import { clip, sharedStart } from "../models/cassettes/request.ts";

/** Common lines before and after the difference. */
const CONTEXT = 2;
/** Lines shown per side. */
const MAX_LINES = 20;

/** A diff of two values: `-` for the recorded lines, `+` for the current ones, redacted and with control characters escaped. */
export function differenceLines(recorded: Json | undefined, now: Json | undefined): readonly string[] {
  const [before, after] = [linesOf(recorded), linesOf(now)];
  if (before.join("\n") === after.join("\n")) return ["  (the difference is not shown because it looks like a secret)"];
  const start = sameCount(before, after);
  const end = sameCount(before.slice(start).toReversed(), after.slice(start).toReversed());
  const [was, is] = [before.slice(start, before.length - end), after.slice(start, after.length - end)];
  const column = sharedStart(was[0] ?? "", is[0] ?? "");
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
