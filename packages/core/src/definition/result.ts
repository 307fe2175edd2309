import type { Json } from "../base/json.ts";

/** What model calls used: tokens, and money where the price of the model is known. */
export type Usage = {
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** US dollars of the calls with a known price. Absent when there was none. */
  readonly costUsd?: number;
  /** Calls whose price nobody knows: `costUsd` is without them. Absent for 0. */
  readonly unpricedCalls?: number;
  /**
   * Calls that did not say what they used, such as answers cut off in the middle. Where a cap holds they count in the other
   * fields with all that was set aside for them, else with nothing. Absent for 0.
   */
  readonly unmeteredCalls?: number;
};

/** Why a state failed. Routes and callers match on it. */
export type FailureCode =
  | "schema" // the only completions were invalid
  | "turn_cap"
  | "assert"
  | "gate" // checkGate never said proceed
  | "model"
  | "context_overflow"
  | "tool"
  | "budget"
  | "timeout"
  | "hook"
  | "fork";

// Type aliases, not interfaces: results are journaled, and only an alias is Json to the compiler.
type ResultBase = {
  readonly executionId: string;
  /** Attempts made, from 1. */
  readonly attempts: number;
  /** Model calls made, over all attempts. */
  readonly turns: number;
  readonly usage: Usage;
  /** Milliseconds from entering to leaving the state, by the recorded clock, waits included. */
  readonly ms: number;
};
export type Completed<O> = ResultBase & { readonly status: "completed"; readonly output: O };
export type Failed = ResultBase & {
  readonly status: "failed";
  readonly code: FailureCode;
  readonly message: string;
  readonly detail?: Json;
};
export type Skipped = ResultBase & { readonly status: "skipped" };
export type Paused = ResultBase & { readonly status: "paused"; readonly request: Json };
export type Cancelled = ResultBase & { readonly status: "cancelled"; readonly reason: string };
/** How one execution of a state ended. A value: nothing throws into routing. */
export type StageResult<O> = Completed<O> | Failed | Skipped | Paused | Cancelled;
