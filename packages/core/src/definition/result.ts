import type { Json, JsonObject } from "../base/json.ts";

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
  | "precondition" // it never answered proceed
  | "model"
  | "context_overflow"
  | "tool"
  | "budget"
  | "timeout"
  | "hook"
  | "fan_out";

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

/** How one sibling of a fan-out ended; `ctx.fork` of the state that joins under `onFailure: "settle"`. */
export type SiblingOutcome =
  | { readonly status: "completed" | "skipped" }
  | { readonly status: "failed" | "cancelled"; readonly code: string; readonly message: string };

/** What a state, a hook or a route may read: frozen data. */
export interface StageContext<Up = Readonly<Record<string, unknown>>, I = unknown, R = unknown> {
  readonly runId: string;
  /** The folder the run works in: absolute, links resolved. */
  readonly workspace: string;
  /** The run input's `task`, or ''. */
  readonly task: string;
  readonly run: { readonly input: R };
  /** This state's own input, from whoever routed here. */
  readonly input: I;
  /** The last accepted output of each state passed on the way, and of joined siblings. Outputs, never transcripts. */
  readonly upstream: Up;
  /** The run's shared object; only a route changes it. */
  readonly context: JsonObject;
  /** What the `setup` hook returned. */
  readonly setup: Json;
  /** From 1. */
  readonly attempt: number;
  /** How often this state was entered in this run, from 1. */
  readonly visit: number;
  /** What `assert` said of the last attempt. */
  readonly feedback?: string;
  /** At a join: how each sibling ended. */
  readonly fork?: Readonly<Record<string, SiblingOutcome>>;
}
