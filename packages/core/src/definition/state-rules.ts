import type { Json } from "../base/json.ts";
import type { Report } from "../base/problems.ts";
import type { StageContext } from "./result.ts";

/** An entry of allowedTools: a pattern; with `optional`, it may match no tool of the session. */
export type AllowedTool = string | { readonly tool: string; readonly optional: true };

export interface RetryPolicy {
  /** Total attempts, from 1. Default: 3. */
  readonly maxAttempts: number;
}

/** Caps of one state or one run. Reaching one is a failure, never a silent success. */
export interface StateLimits {
  /** Input plus output tokens. Failure code `budget`. */
  readonly maxTokens?: number;
  /** US dollars by the session's prices; every model in its scope needs a price. Failure code `budget`. */
  readonly maxCostUsd?: number;
  /** Working time in milliseconds, without waits for answers. Failure code `timeout`. */
  readonly timeoutMs?: number;
}
export interface RunLimits extends StateLimits {
  /** Visits of one state. Default: 10. */
  readonly maxVisits?: number;
  /** Routes taken in one run. Default: 10 times the number of states. */
  readonly maxHops?: number;
  /** Items of one list. Default: 1,000. */
  readonly maxItems?: number;
}

/** May veto a call that is approved. A throw counts as a veto. */
export type GuardHook = (call: GuardedCall, ctx: StageContext) => undefined | Veto | Promise<undefined | Veto>;
export interface GuardedCall {
  readonly tool: string;
  readonly input: Json;
  readonly executionId: string;
  readonly attempt: number;
  readonly proposalId: string;
  readonly argsDigest: string;
  /** What approved the call. */
  readonly approvedBy: "envelope" | "grant" | "mode";
}
export interface Veto {
  readonly veto: string;
}

export type PreconditionAnswer = "proceed" | "skip" | { readonly retryAfterMs: number };
export type AssertAnswer = "ok" | { readonly retry: string } | { readonly fail: string };

/** What the sandbox lets the commands of a state do, in addition to its `allowedTools`. */
export type StateSandbox = {
  /** Whether they may use the network. Default: false. */
  readonly network?: boolean;
  /** Folders of the workspace that they may write to although the state may not; empty at the start and removed afterwards. */
  readonly scratch?: readonly string[];
};

const STATE_LIMITS = ["maxTokens", "maxCostUsd", "timeoutMs"];
const RUN_LIMITS = [...STATE_LIMITS, "maxVisits", "maxHops", "maxItems"];

/** Caps are positive: whole numbers, or an amount of dollars. */
export function checkLimits(report: Report, path: string, limits: unknown, of: "state" | "run"): void {
  if (limits === undefined) return;
  if (typeof limits !== "object" || limits === null) {
    report.add(path, "is an object of limits");
    return;
  }
  report.unknownKeys(path, limits, of === "run" ? RUN_LIMITS : STATE_LIMITS);
  for (const [name, value] of Object.entries(limits)) {
    if (value === undefined) continue;
    const wanted = name === "maxCostUsd" ? "is a number above 0, in US dollars" : "is a whole number from 1";
    const fits = name === "maxCostUsd" ? isAmount(value) : isCount(value);
    if (!fits) report.add(`${path}.${name}`, wanted, "omit it for no limit");
  }
}

/** A whole number from 1. */
export function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 1;
}

function isAmount(value: unknown): boolean {
  return typeof value === "number" && Number.isFinite(value) && value > 0;
}
