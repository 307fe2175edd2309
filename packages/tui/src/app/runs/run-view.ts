import type { Json, OpenRequest, Usage } from "@sluice/core";
import type { TranscriptEntry } from "@sluice/stages";

/** Everything the screen shows of one run, built from its events, its records and its live text; nothing else. */
export interface RunView {
  readonly runId: string;
  readonly pipeline: string;
  readonly task: string;
  readonly models: readonly string[];
  readonly mode: string;
  readonly cwd: string;
  readonly status: RunStatus;
  /** Every state of the pipeline in declared order, also those that were not entered. */
  readonly states: readonly StateView[];
  /** Every execution of a state in the order they began, those of siblings included. */
  readonly executions: readonly ExecutionView[];
  /** Which ways were taken, oldest first. */
  readonly path: readonly Hop[];
  /** What somebody has to answer, oldest first. */
  readonly requests: readonly OpenRequest[];
  readonly usage: Usage;
  readonly denied: number;
  /** Epoch milliseconds. */
  readonly startedAt: number;
  readonly endedAt?: number;
  readonly output?: Json;
  readonly error?: { readonly code: string; readonly message: string };
  /** The last boundary that was told, in one line. */
  readonly last: string;
}

export type RunStatus = "starting" | "running" | "waiting" | "suspended" | "completed" | "failed" | "cancelled";

export interface StateView {
  readonly id: string;
  readonly kind: string;
  /** The most turns an attempt may take; absent where the kind has no turns. */
  readonly turnCap?: number;
  /** Where its routes may go, as far as they are declared. */
  readonly targets: readonly string[];
}

export type ExecutionStatus =
  | "running"
  | "waiting"
  | "retrying"
  | "completed"
  | "failed"
  | "skipped"
  | "paused"
  | "cancelled"
  | "suspended";

export interface ExecutionView {
  /** Unique in the tree of runs: `<runId>:<executionId>`. */
  readonly key: string;
  readonly runId: string;
  readonly executionId: string;
  readonly stateId: string;
  readonly status: ExecutionStatus;
  readonly attempt: number;
  readonly turn: number;
  readonly turnCap?: number;
  readonly usage: Usage;
  readonly startedAt: number;
  readonly endedAt?: number;
  /** The fork it is a sibling of: the parent's run id and the fork's key. Absent outside forks. */
  readonly fork?: { readonly runId: string; readonly fork: string; readonly join: string };
  /** Tool patterns it may use without asking; undefined without an envelope. */
  readonly tools?: readonly string[];
  /** Why it failed, was skipped or sent back. */
  readonly fault?: string;
  /** What was said and done, in order. Grows at the end only. */
  readonly items: readonly TranscriptItem[];
  /** What streams now and is not yet among the items. */
  readonly live?: { readonly turn: number; readonly text: string; readonly reasoning: string };
}

/** A part of a transcript that is final, except that a call's result is filled in when it is there. */
export type TranscriptItem =
  | { readonly kind: "boundary"; readonly text: string; readonly tone: "plain" | "good" | "bad" | "notice" }
  | Extract<TranscriptEntry, { readonly kind: "text" | "reasoning" | "message" }>
  | CallView;

export interface CallView {
  readonly kind: "call";
  readonly turn: number;
  readonly callId: string;
  readonly tool: string;
  /** Undefined where the arguments could not be read. */
  readonly input: Json | undefined;
  readonly state: "proposed" | "asking" | "running" | "ok" | "error" | "refused" | "abandoned" | "outcome_unknown";
  /** Why it was refused, or why it asks. */
  readonly why?: string;
  readonly output?: Json;
  readonly ms?: number;
  readonly facts?: Readonly<Record<string, Json>>;
}

export interface Hop {
  readonly runId: string;
  readonly from: string;
  readonly choice: "to" | "fanOut" | "done" | "fail" | "cancel";
  readonly to: readonly string[];
  readonly join?: string;
}
