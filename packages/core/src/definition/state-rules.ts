import type { Json } from "../base/json.ts";
import type { Report } from "../base/problems.ts";
import type { StageContext } from "./result.ts";

/** An entry of allowedTools: a pattern, or a pattern that may match no live tool. */
export type AllowedTool = string | { readonly tool: string; readonly optional: true };

export interface RetryPolicy {
  /** Attempts in all, from 1. 3 when omitted. */
  readonly maxAttempts: number;
}

/** Caps of one state or one run. Reaching one is a failure, never a silent success. */
export interface StateLimits {
  /** Input plus output tokens. Failure code `budget`. */
  readonly maxTokens?: number;
  /** US dollars, by the prices the session knows; every model it covers needs one. Failure code `budget`. */
  readonly maxCostUsd?: number;
  /** Working time in milliseconds; waiting for people does not count. Failure code `timeout`. */
  readonly timeoutMs?: number;
}
export interface RunLimits extends StateLimits {
  /** Routed entries into one state. 10 when omitted. */
  readonly maxVisits?: number;
  /** Routes taken in one run. 10 times the number of states when omitted. */
  readonly maxHops?: number;
}

/** What a state's owner may add to a call's verdict. A throw counts as a veto. */
export type GuardHook = (call: GuardedCall, ctx: StageContext) => undefined | Veto | Promise<undefined | Veto>;
export interface GuardedCall {
  readonly tool: string;
  readonly input: Json;
  readonly executionId: string;
  readonly attempt: number;
  readonly proposalId: string;
  readonly argsDigest: string;
  /** What approved the call before the hooks were asked. */
  readonly approvedBy: "envelope" | "grant" | "mode";
}
export interface Veto {
  readonly veto: string;
}

export type PreconditionAnswer = "proceed" | "skip" | { readonly retryAfterMs: number };
export type AssertAnswer = "ok" | { readonly retry: string } | { readonly fail: string };

/** What the commands of a state may do behind the wall, besides what its `allowedTools` say. */
export type StateSandbox = {
  /** Whether they reach the network. Default: no. */
  readonly network?: boolean;
  /** Folders of the workspace that they may fill although the state may not write files; they are empty at first and gone afterwards. */
  readonly scratch?: readonly string[];
};

const STATE_LIMITS = ["maxTokens", "maxCostUsd", "timeoutMs"];
const RUN_LIMITS = [...STATE_LIMITS, "maxVisits", "maxHops"];

/** Caps are counts, milliseconds or dollars: zero would end what has not begun, and a fraction of a count is a mistake. */
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
    if (!fits) report.add(`${path}.${name}`, wanted, "leave it out for no such limit");
  }
}

/** A whole number from 1. */
export function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 1;
}

function isAmount(value: unknown): boolean {
  return typeof value === "number" && Number.isFinite(value) && value > 0;
}
