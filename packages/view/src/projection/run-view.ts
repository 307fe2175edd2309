import type { Json, OpenRequest, Usage } from "@sluice/core";
import type { TranscriptEntry } from "@sluice/stages";
import type { AppendOnlyList } from "./append-only-list.ts";

/** Everything the screen shows of one run, built from its records, its open requests and its live text; nothing else. */
export interface RunView {
  readonly runId: string;
  readonly pipeline: string;
  readonly task: string;
  readonly models: readonly string[];
  readonly mode: string;
  readonly cwd: string;
  /** Names of variables that the session was told are secret. */
  readonly secrets?: readonly string[];
  readonly status: RunStatus;
  /** Where the pipeline begins, as far as it is known. */
  readonly initial?: string;
  /** Every state of the pipeline in declared order, also those that were not entered; of older runs those that were named so far. */
  readonly states: readonly StateView[];
  /** Every execution of a state in the order they began; siblings in declared order, before their join. */
  readonly executions: readonly ExecutionView[];
  /** Which ways were taken, oldest first. */
  readonly path: readonly Hop[];
  /** Every fork, oldest first. */
  readonly forks: readonly ForkView[];
  /** What somebody has to answer, oldest first. */
  readonly requests: readonly OpenRequest[];
  /** Caps that came near or were reached, each with what was last said of it. */
  readonly caps: readonly CapView[];
  readonly usage: Usage;
  readonly denied: number;
  /** Epoch milliseconds. */
  readonly startedAt: number;
  readonly endedAt?: number;
  readonly output?: Json;
  readonly error?: { readonly code: string; readonly message: string };
  /** The last boundary that was told, in one line. */
  readonly last: string;
  /** Whether text streams in while a model speaks: only for runs of this process. */
  readonly streams: boolean;
  /** All that is final, in the order it became so: what a log prints, each once. */
  readonly log: AppendOnlyList<LogItem>;
}

/** `waiting`: a person has to answer something, whatever goes on beside it. `suspended`: no process works on it. */
type RunStatus = "starting" | "running" | "waiting" | "suspended" | "completed" | "failed" | "cancelled";

export interface StateView {
  readonly id: string;
  /** Empty where it is not known. */
  readonly kind: string;
  /** The most turns an attempt may take; absent where the kind has no turns. */
  readonly turnCap?: number;
  /** Where its routes may go, siblings and joins included; absent where nothing says so. */
  readonly targets?: readonly string[];
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
  /** How often its state had been entered, this time included. */
  readonly visit: number;
  readonly status: ExecutionStatus;
  readonly attempt: number;
  /** Of this attempt, from 1; 0 before its first. */
  readonly turn: number;
  /** Of all attempts. */
  readonly turns: number;
  readonly turnCap?: number;
  readonly usage: Usage;
  /** What of it went to which model. */
  readonly spent: readonly ModelUsage[];
  readonly startedAt: number;
  readonly endedAt?: number;
  /** The fork it is a sibling of; `join` is empty until the fork is known. Absent outside forks. */
  readonly fork?: { readonly runId: string; readonly fork: string; readonly join: string };
  /** Tools it may use without asking; undefined before its set-up. */
  readonly tools?: readonly string[];
  /** Why it failed, was skipped or sent back. */
  readonly fault?: string;
  /** What was said and done, in order. */
  readonly items: AppendOnlyList<TranscriptItem>;
  /** What streams now and is not yet among the items. */
  readonly live?: LiveView;
}

export interface LiveView {
  readonly turn: number;
  readonly text: string;
  readonly reasoning: string;
  /** Characters at the beginning that are not kept; they stand in the item once the turn is over. */
  readonly cut: number;
}

export interface ModelUsage {
  readonly model: string;
  readonly usage: Usage;
  readonly turns: number;
}

/** A part of a transcript that is final, except that a call's result is filled in when it is there. */
export type TranscriptItem =
  | BoundaryItem
  | Extract<TranscriptEntry, { readonly kind: "text" | "reasoning" | "message" }>
  | CallView;

export type NoteTone = "plain" | "good" | "bad" | "notice";

export interface BoundaryItem {
  readonly kind: "boundary";
  /** `attempt` begins a transcript of its own; `note` is what the machine says in between. */
  readonly rank: "attempt" | "note";
  readonly text: string;
  readonly tone: NoteTone;
}

export interface CallView {
  readonly kind: "call";
  readonly attempt: number;
  readonly turn: number;
  readonly callId: string;
  readonly tool: string;
  /** Undefined where the arguments could not be read. */
  readonly input: Json | undefined;
  /** The arguments in one line, as the gate told them; there when it has decided. */
  readonly summary?: string;
  readonly state: "proposed" | "asking" | "running" | "ok" | "error" | "refused" | "abandoned" | "outcome_unknown";
  /** Why it was refused, or why it asks. */
  readonly why?: string;
  /** Who let it run, where somebody was asked. */
  readonly approvedBy?: string;
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

export interface ForkView {
  /** The run that forked. */
  readonly runId: string;
  readonly fork: string;
  /** In declared order. */
  readonly siblings: readonly string[];
  readonly join: string;
  readonly joined: boolean;
}

export interface CapView {
  /** The execution it was met in; absent for a cap of the run met outside any. */
  readonly key?: string;
  /** `state.maxTokens`, `run.maxCostUsd`, `turnCap`, … */
  readonly limit: string;
  readonly message: string;
  readonly reached: boolean;
  readonly used?: number;
  readonly max?: number;
}

/** One final thing of a run. */
export interface LogItem {
  /** Whose it is: the execution's key; absent for what happened to the run as a whole. */
  readonly key?: string;
  /** Its state, where siblings are at work beside it. */
  readonly sibling?: string;
  readonly item: TranscriptItem | RunEndItem;
}

export interface RunEndItem {
  readonly kind: "end";
  readonly status: "completed" | "failed" | "cancelled";
  readonly output?: Json;
  readonly error?: { readonly code: string; readonly message: string };
}
