import type { Json, JsonObject } from "../base/json.ts";

/** The tokens and cost of model calls. */
export type Usage = {
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** US dollars of the calls with a known price. Absent if there are none. */
  readonly costUsd?: number;
  /** Calls without a known price, which `costUsd` does not include. Absent for 0. */
  readonly unpricedCalls?: number;
  /**
   * Calls that did not report their usage, such as interrupted ones. Under a cap they count in the other fields with their
   * reservation, else with nothing. Absent for 0.
   */
  readonly unmeteredCalls?: number;
};

/** Why a state failed. */
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
  | "fan_out"
  | "unanswered" // a person was asked and gave no answer
  | "timer" // what a timer waits for is not a time
  | "pipeline" // the run of another pipeline did not complete
  | "authored" // a model wrote no pipeline that may run
  | "router" // it chose no target
  | "orchestrator" // it selected no state
  | "script" // a command did not end as it should
  | "poll" // the same, or nothing was ready in time
  | "interrupted"; // the handler of an interrupt did not return to a parallel state

// Type aliases, not interfaces: results are journaled, and only an alias is Json to the compiler.
type ResultBase = {
  readonly executionId: string;
  /** In a list: the key of the item. */
  readonly key?: string;
  /** The number of attempts. */
  readonly attempts: number;
  /** Model calls over all attempts. */
  readonly turns: number;
  readonly usage: Usage;
  /** Milliseconds from entering to leaving the state by the recorded clock, including waits. */
  readonly ms: number;
};
export type Completed<O> = ResultBase & {
  readonly status: "completed";
  readonly output: O;
  readonly adds?: Additions;
};
/** What a completed state adds to the run beside its output. */
export type Additions = {
  /** Merged into the context; what the route merges comes on top. */
  readonly context?: JsonObject;
  /** Outputs of its parts, by names of their own. */
  readonly upstream?: JsonObject;
};
export type Failed = ResultBase & {
  readonly status: "failed";
  readonly code: FailureCode;
  readonly message: string;
  readonly detail?: Json;
};
export type Skipped = ResultBase & { readonly status: "skipped" };
export type Paused = ResultBase & { readonly status: "paused"; readonly request: Json };
export type Cancelled = ResultBase & {
  readonly status: "cancelled";
  readonly reason: string;
  /** What it had done when a person interrupted it: the text of an agent, the streams of a command. */
  readonly partial?: Json;
};
/** How one execution of a state ended. */
export type StageResult<O> = Completed<O> | Failed | Skipped | Paused | Cancelled;

/** How one sibling of a fan-out ended; `ctx.fork` of the state that joins under `onFailure: "settle"`. */
export type SiblingOutcome =
  | { readonly status: "completed" | "skipped" }
  | { readonly status: "failed" | "cancelled"; readonly code: string; readonly message: string };

/** How one item of a list ended; `ctx.items` of the state that joins has them in the list's order. */
export interface ListItem<O = unknown> {
  /** From `key` of `forEach()`; without it the index. */
  readonly key: string;
  readonly status: "completed" | "skipped" | "failed" | "cancelled";
  /** Of a completed item. */
  readonly output?: O;
  /** Why it failed or was cancelled. */
  readonly code?: string;
  readonly message?: string;
}

/** How an event led to a state. A type alias, because it is part of a patch. */
export type Arrival = {
  readonly event: string;
  /** `rationale` of the event's data. */
  readonly rationale?: string;
};
/** What a run read of its project's files when it started. Untrusted: it says what the authors of those files wrote. */
export type ProjectFacts = {
  /** The text of AGENTS.md between two lines that label it. There if a prompt of the pipeline reads it. */
  readonly agents?: string;
  /** The project's skills. There if a state may call ReadSkill. */
  readonly skills?: readonly SkillFacts[];
};
export type SkillFacts = {
  readonly name: string;
  readonly description: string;
  /** Its folder with links resolved, relative to the workspace. */
  readonly path: string;
};

/** What prompts, hooks and routes read. Frozen. */
export interface StageContext<Up = Readonly<Record<string, unknown>>, I = unknown, R = unknown> {
  readonly runId: string;
  /** The absolute path of the run's folder, with links resolved. */
  readonly workspace: string;
  /** The run input's `task`, or ''. */
  readonly task: string;
  readonly run: { readonly input: R };
  /** The input from the route to this state. */
  readonly input: I;
  /** The last output of each completed state and joined sibling. */
  readonly upstream: Up;
  /** The run's shared object, which only routes change. */
  readonly context: JsonObject;
  /** What the run read of its project's files when it started; absent if nothing in the pipeline reads it. */
  readonly project?: ProjectFacts;
  /** The result of the `setup` hook. */
  readonly setup: Json;
  /** The event that led here, and the reason that the state before it gave. */
  readonly arrivedBy?: Arrival;
  /** From 1. */
  readonly attempt: number;
  /** The count of this state's visits in this run, from 1. */
  readonly visit: number;
  /** The feedback of `assert` on the previous attempt; in a first attempt, what a person interrupted in the previous visit. */
  readonly feedback?: string;
  /** In a join: how each sibling ended. */
  readonly fork?: Readonly<Record<string, SiblingOutcome>>;
  /** In the join of a list: its items, by the state that ran them. */
  readonly items?: { readonly [K in keyof Up]?: readonly ListItem<Exclude<Up[K], undefined>>[] };
}
