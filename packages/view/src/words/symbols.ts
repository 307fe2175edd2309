import type { Usage } from "@sluice/core";
import { usdText } from "@sluice/core/runtime";
import { cleanInline, headOf } from "../text/clean.ts";
import type { Span, Style } from "../text/line.ts";

export type ExecutionStatus =
  | "running"
  | "waiting"
  | "retrying"
  | "completed"
  | "failed"
  | "skipped"
  | "paused"
  | "cancelled"
  | "suspended"
  /** It waits for a time, with or without a process. */
  | "sleeping"
  /** It waits while another execution handles an interrupt. */
  | "interrupted";

export type CallState =
  | "proposed"
  | "asking"
  | "running"
  | "ok"
  | "error"
  | "refused"
  | "abandoned"
  | "outcome_unknown";

/** A status as a sign and a word, so that neither colour nor font carries it alone. */
export interface StatusSymbol {
  readonly sign: string;
  readonly word: string;
  readonly style: Style;
}

const PENDING: StatusSymbol = { sign: "○", word: "pending", style: "dim" };

const EXECUTION_SYMBOLS: Readonly<Record<ExecutionStatus, StatusSymbol>> = {
  running: { sign: "▶", word: "running", style: "accent" },
  waiting: { sign: "◆", word: "waiting for you", style: "notice" },
  retrying: { sign: "↻", word: "retrying", style: "notice" },
  completed: { sign: "✔", word: "done", style: "good" },
  failed: { sign: "✖", word: "failed", style: "bad" },
  skipped: { sign: "⊘", word: "skipped", style: "dim" },
  paused: { sign: "◆", word: "paused", style: "notice" },
  cancelled: { sign: "⊘", word: "cancelled", style: "dim" },
  suspended: { sign: "◆", word: "suspended", style: "notice" },
  sleeping: { sign: "☾", word: "sleeping", style: "accent" },
  interrupted: { sign: "◇", word: "interrupted", style: "notice" },
};

export const CALL_SYMBOLS: Readonly<Record<CallState, StatusSymbol>> = {
  proposed: { sign: "○", word: "pending", style: "dim" },
  asking: { sign: "◆", word: "waiting for you", style: "notice" },
  running: { sign: "▶", word: "running", style: "accent" },
  ok: { sign: "✔", word: "done", style: "good" },
  error: { sign: "✖", word: "failed", style: "bad" },
  refused: { sign: "⊘", word: "refused", style: "bad" },
  abandoned: { sign: "⊘", word: "abandoned", style: "notice" },
  outcome_unknown: { sign: "✖", word: "outcome unknown", style: "bad" },
};

export function symbolOf(status: ExecutionStatus | undefined): StatusSymbol {
  return status === undefined ? PENDING : EXECUTION_SYMBOLS[status];
}

/** Whether the execution continues, now or after a resume. */
export function isUnfinished(status: ExecutionStatus): boolean {
  return (
    status === "running" ||
    status === "waiting" ||
    status === "retrying" ||
    status === "suspended" ||
    status === "sleeping" ||
    status === "interrupted"
  );
}

const LONGEST_NAME = 100;

/** An untrusted name, safe to show on one line. */
export function stateLabel(id: string): string {
  return cleanInline(headOf(id, LONGEST_NAME));
}

export function span(text: string, style?: Style): Span {
  return style === undefined || style === "plain" ? { text } : { text, style };
}

/** `950`, `12.3k`, `1.2M` */
export function shortCount(count: number): string {
  if (count < 1_000) return String(count);
  if (count < 999_950) return `${shortened(count / 1_000)}k`;
  return `${shortened(count / 1_000_000)}M`;
}

export function tokensOf({ inputTokens, outputTokens }: Usage): number {
  return inputTokens + outputTokens;
}

/** The known cost; `+` marks calls of unknown price. Empty if there is no cost. */
export function moneyOf({ costUsd = 0, unpricedCalls = 0 }: Usage): string {
  if (costUsd === 0) return unpricedCalls > 0 ? "$?" : "";
  return `${usdText(costUsd)}${unpricedCalls > 0 ? "+" : ""}`;
}

/** A duration in whole seconds: `5s`, `1m05s`, `2h03m`, `3d04h`. */
export function elapsed(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  const [minutes, hours] = [Math.floor(seconds / 60), Math.floor(seconds / 3_600)];
  if (hours >= LONGEST_HOURS) return `${Math.floor(hours / 24)}d${padded(hours % 24)}h`;
  if (hours > 0) return `${hours}h${padded(minutes % 60)}m`;
  return minutes > 0 ? `${minutes}m${padded(seconds % 60)}s` : `${seconds}s`;
}

/** Hours from which a duration is in days. */
const LONGEST_HOURS = 48;

/** The time until a moment, which ends with `1s`: `5s`, `1m05s`, `2h03m`, `3d04h`. */
export function timeLeft(until: number, now: number): string {
  return elapsed(Math.ceil((until - now) / 1_000) * 1_000);
}

function padded(number: number): string {
  return String(number).padStart(2, "0");
}

function shortened(number: number): string {
  return number.toFixed(number < 100 ? 1 : 0).replace(/\.0$/, "");
}
