import type { Json } from "../base/json.ts";
import type { StageContext } from "./context.ts";

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

export type GateAnswer = "proceed" | "skip" | { readonly retryAfterMs: number };
export type AssertAnswer = "ok" | { readonly retry: string } | { readonly fail: string };

/** What the commands of a state may do behind the wall, besides what its `allowedTools` say. */
export type StateSandbox = {
  /** Whether they reach the network. Default: no. */
  readonly network?: boolean;
  /** Folders of the workspace that they may fill although the state may not write files; they are empty at first and gone afterwards. */
  readonly scratch?: readonly string[];
};
