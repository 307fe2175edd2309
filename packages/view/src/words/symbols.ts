import { type Usage, usdText } from "@sluice/core";
import type { ExecutionStatus } from "../projection/run-view.ts";
import { cleanInline, headOf } from "../text/clean.ts";
import type { Line, Span, Style } from "../text/line.ts";
import { widthOf } from "../text/width.ts";

/** How something stands, for the eye: a sign and a word, so that neither colour nor font has to tell alone. */
export interface StatusSymbol {
  readonly sign: string;
  readonly word: string;
  readonly style: Style;
}

const NOT_YET: StatusSymbol = { sign: "○", word: "not yet", style: "dim" };

const MARKS: Readonly<Record<ExecutionStatus, StatusSymbol>> = {
  running: { sign: "▶", word: "running", style: "accent" },
  waiting: { sign: "◆", word: "waits for you", style: "notice" },
  retrying: { sign: "↻", word: "retrying", style: "notice" },
  completed: { sign: "✔", word: "done", style: "good" },
  failed: { sign: "✖", word: "failed", style: "bad" },
  skipped: { sign: "⊘", word: "skipped", style: "dim" },
  paused: { sign: "◆", word: "paused", style: "notice" },
  cancelled: { sign: "⊘", word: "cancelled", style: "dim" },
  suspended: { sign: "◆", word: "suspended", style: "notice" },
};

/** Columns of the signs, measured once. */
const WIDTHS: ReadonlyMap<string, number> = new Map(
  [NOT_YET, ...Object.values(MARKS)].map(({ sign }) => [sign, widthOf(sign)]),
);

/** Columns of a line whose signs are spans of their own. */
export function widthOfLine(line: Line): number {
  return line.reduce((sum, { text }) => sum + (WIDTHS.get(text) ?? widthOf(text)), 0);
}

export function symbolOf(status: ExecutionStatus | undefined): StatusSymbol {
  return status === undefined ? NOT_YET : MARKS[status];
}

/** Whether somebody is still at work on it, or will be. */
export function isUnfinished(status: ExecutionStatus): boolean {
  return status === "running" || status === "waiting" || status === "retrying" || status === "suspended";
}

const LONGEST_NAME = 100;

/** A name of somebody's, safe to show on one line. */
export function stateLabel(id: string): string {
  return cleanInline(headOf(id, LONGEST_NAME));
}

export function span(text: string, style?: Style): Span {
  return style === undefined || style === "plain" ? { text } : { text, style };
}

/** `950`, `12.3k`, `1.2M` */
export function shortCount(count: number): string {
  if (count < 1_000) return String(count);
  if (count < 999_950) return `${trimmed(count / 1_000)}k`;
  return `${trimmed(count / 1_000_000)}M`;
}

export function tokensOf({ inputTokens, outputTokens }: Usage): number {
  return inputTokens + outputTokens;
}

/** Money as far as it is known; a `+` stands for calls nobody knows the price of. Empty when there is none. */
export function moneyOf({ costUsd = 0, unpricedCalls = 0 }: Usage): string {
  if (costUsd === 0) return unpricedCalls > 0 ? "$?" : "";
  return `${usdText(costUsd)}${unpricedCalls > 0 ? "+" : ""}`;
}

/** Whole seconds, so that it is read and not watched: `5s`, `1m05s`, `2h03m`. */
export function elapsed(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  const [minutes, hours] = [Math.floor(seconds / 60), Math.floor(seconds / 3_600)];
  if (hours > 0) return `${hours}h${two(minutes % 60)}m`;
  return minutes > 0 ? `${minutes}m${two(seconds % 60)}s` : `${seconds}s`;
}

function two(number: number): string {
  return String(number).padStart(2, "0");
}

function trimmed(number: number): string {
  return number.toFixed(number < 100 ? 1 : 0).replace(/\.0$/, "");
}
