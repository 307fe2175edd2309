import type { Json, OpenRequest, Usage } from "@sluice/core";
import type { TranscriptEntry } from "@sluice/stages";
import type { TableRow } from "../words/decision-table.ts";
import type { ForkChild, Hop, RouteView } from "../words/routes.ts";
import type { CallState, ExecutionStatus } from "../words/symbols.ts";
import type { AppendOnlyList } from "./append-only-list.ts";

/** An open request of a run. */
export interface RunRequest extends OpenRequest {
  /** How the store's copy differs from what the run recorded: then it must not be answered. */
  readonly fault?: string;
}

/** A run and the runs below it, reduced from events, transcripts, open requests and live text. */
export interface RunView {
  readonly runId: string;
  readonly pipeline: string;
  readonly task: string;
  /** What the run was started with; absent before `run.started`. */
  readonly input?: Json;
  /** The origin of a forked run, and where a run started if not in the initial state, in words; else empty. */
  readonly origin: string;
  readonly models: readonly string[];
  /** The agent of another program that works on the run, with its version and class, and those after it; absent for a run with models of its own. */
  readonly agent?: string;
  readonly mode: string;
  readonly cwd: string;
  /** Names of environment variables that the session treats as secrets. */
  readonly secrets?: readonly string[];
  readonly status: RunStatus;
  /** When the first of its states that sleep wakes, in epoch milliseconds; absent if none sleeps, or if nothing wakes it. */
  readonly wakeAt?: number;
  /** Of a run that sleeps: no process executes it, so that another has to wake it. */
  readonly unattended?: true;
  /** The state in which the run starts, once known. */
  readonly initial?: string;
  /** Every state of the pipeline in declared order; for runs of older versions, those seen so far. */
  readonly states: readonly StateView[];
  /** The rows of the pipeline's table; empty for one that routes by functions, and for runs of older versions. */
  readonly rows: readonly TableRow[];
  readonly interrupts: readonly InterruptView[];
  /** The other pipelines that the run invoked, in the order they started. */
  readonly invoked: readonly PipelineView[];
  /** What the pipeline's author says of it and of those that it may run. */
  readonly meta: { readonly dangerLevel?: string; readonly captureOutput?: false };
  /** Executions in the order they began; siblings in declared order, before their join. */
  readonly executions: readonly ExecutionView[];
  /** Transitions taken, oldest first. */
  readonly path: readonly Hop[];
  /** Accepted and rejected route decisions, oldest first. */
  readonly routes: readonly RouteView[];
  /** Fan-outs, oldest first. */
  readonly forks: readonly ForkView[];
  /** Open requests, oldest first. */
  readonly requests: readonly RunRequest[];
  /** Requests and refusals, in the order of their first event. */
  readonly decisions: readonly DecisionView[];
  /** Approved calls by what approved them, such as `the envelope`. */
  readonly approvals: ReadonlyMap<string, number>;
  /** Names of those who answered requests or sent messages. */
  readonly people: readonly string[];
  /** Messages of people that a model has read, oldest first. */
  readonly messages: readonly MessageView[];
  /** Limits that are near or reached, each with its latest message. */
  readonly caps: readonly CapView[];
  readonly usage: Usage;
  /** Tool calls that models made. */
  readonly calls: number;
  readonly denied: readonly DeniedCall[];
  readonly spans: AppendOnlyList<TimeSpan>;
  /**
   * Milliseconds by which the latest times of the view are later than the recorded ones, because a clock was set back; times of a
   * view never run backwards. Absent for 0.
   */
  readonly shiftedMs?: number;
  /** Epoch milliseconds. */
  readonly startedAt: number;
  /** The time of the last event. */
  readonly updatedAt: number;
  readonly endedAt?: number;
  /** The final state that ended the run. */
  readonly endState?: string;
  readonly output?: Json;
  readonly error?: ShownError;
  /** What the orchestrator said when the run had ended. */
  readonly lastWord?: LastWord;
  /** The last line of the log. */
  readonly last: string;
  /** Whether live text arrives: only for runs of this process. */
  readonly streams: boolean;
  /** Everything final, in the order it became final. */
  readonly log: AppendOnlyList<LogItem>;
}

/** `waiting`: a request is open. `sleeping`: it only sleeps, with or without a process. `suspended`: no process executes the run. */
type RunStatus = "starting" | "running" | "sleeping" | "waiting" | "suspended" | "completed" | "failed" | "cancelled";

export interface StateView {
  readonly id: string;
  /** Empty if unknown. */
  readonly kind: string;
  /** Maximum number of turns per attempt; absent for kinds without turns. */
  readonly turnCap?: number;
  /** Possible next states, siblings and joins included; absent if unknown. */
  readonly targets?: readonly string[];
  /** The name that its author gave it, if it is not the id. */
  readonly label?: string;
  /** Of a final state: how it ends the run. */
  readonly outcome?: string;
}

/** A detour that a changed file starts. */
export interface InterruptView {
  readonly name: string;
  /** The pattern of files. */
  readonly files: string;
  /** The state that handles it. */
  readonly target: string;
}

/** Another pipeline that a run invoked. */
export interface PipelineView extends Pick<RunView, "states" | "rows" | "interrupts"> {
  /** The child run. */
  readonly runId: string;
  readonly pipeline: string;
  readonly initial?: string;
  /** What its parent calls it. */
  readonly key: string;
}

export interface ExecutionView {
  /** Unique in the tree of runs: `<runId>:<executionId>`. */
  readonly key: string;
  readonly runId: string;
  readonly executionId: string;
  readonly stateId: string;
  /** 1 for the first execution of its state. */
  readonly visit: number;
  /** The key of the list's item that it is about; absent for any other execution, and for a key that is the state's id. */
  readonly item?: string;
  readonly status: ExecutionStatus;
  readonly attempt: number;
  /** Turn of the current attempt, from 1; 0 before the first. */
  readonly turn: number;
  /** Finished turns of all attempts. */
  readonly turns: number;
  readonly turnCap?: number;
  readonly usage: Usage;
  /** The usage by model. */
  readonly spent: readonly ModelUsage[];
  readonly turnLog: readonly TurnView[];
  /** Epoch milliseconds. */
  readonly startedAt: number;
  /** The time of its last event. */
  readonly updatedAt: number;
  readonly endedAt?: number;
  /** The sleeps that it began. */
  readonly sleeps: number;
  /** When it wakes, in epoch milliseconds; only while it sleeps. */
  readonly nextWakeAt?: number;
  /** The last attempt of a poll that sleeps. */
  readonly polled?: { readonly attempt: number; readonly exitCode?: number };
  /** When it slept, waited for runs that slept, or no process executed it; oldest first, without overlaps. */
  readonly rests: readonly Rest[];
  /** Milliseconds of its rests; without those since `restingSince`. */
  readonly restMs: number;
  /** Epoch milliseconds; only while it rests. */
  readonly restingSince?: number;
  /** The fan-out it is a sibling of; `join` is empty until known. */
  readonly fork?: { readonly runId: string; readonly fork: string; readonly join: string };
  /** The child run of the pipeline that it belongs to; absent for states of the root's pipeline. */
  readonly invoked?: string;
  /** The interrupt that it handles, and the execution that waits for it. */
  readonly handles?: { readonly interrupt: string; readonly files: readonly string[]; readonly of: string };
  /** The interrupt that it waits for, and the state that handles it. */
  readonly interrupted?: { readonly interrupt: string; readonly files: readonly string[]; readonly by: string };
  /** Tools in its envelope; undefined before its set-up. */
  readonly tools?: readonly string[];
  /** Why it failed, was skipped, or is retrying. */
  readonly fault?: string;
  readonly items: AppendOnlyList<TranscriptItem>;
  /** Text that streams and is not among the items yet. */
  readonly live?: LiveView;
}

/** A time without work, in epoch milliseconds. */
export interface Rest {
  readonly from: number;
  /** Absent while it lasts. */
  readonly to?: number;
}

export interface LiveView {
  readonly turn: number;
  readonly text: string;
  readonly reasoning: string;
  /** Characters dropped from the beginning; the item of the finished turn has them. */
  readonly cut: number;
}

export interface ModelUsage {
  readonly model: string;
  readonly usage: Usage;
  readonly turns: number;
}

export interface TurnView {
  readonly attempt: number;
  readonly turn: number;
  readonly model: string;
  /** Model calls for this turn, failed ones included. */
  readonly tries: number;
  /** Epoch milliseconds. */
  readonly from: number;
  readonly to?: number;
  /** Milliseconds between these times in which no process executed it. */
  readonly restMs: number;
  readonly usage?: Usage;
}

/** A part of a transcript; final, except that a call's result is added later. */
export type TranscriptItem =
  | BoundaryItem
  | Extract<TranscriptEntry, { readonly kind: "text" | "reasoning" | "message" }>
  | CallView
  | CommandView
  | AnswerView;

/** One start of the command of a state: of a script its only one, of a poll one for each attempt. */
export interface CommandView {
  readonly kind: "command";
  /** The attempt of its execution, from 1. */
  readonly attempt: number;
  /** Counted in the attempt, from 1. */
  readonly number: number;
  /** Whether its state repeats it. */
  readonly isPoll: boolean;
  /** The program with its arguments, or a shell line. */
  readonly words: readonly string[];
  /** `ended`: whether its exit code means success is not known yet. `not_yet`: a poll starts it again. */
  readonly state: "running" | "ended" | "ok" | "not_yet" | "error";
  /** Absent if it did not end by itself. */
  readonly exitCode?: number;
  /** Why it did not end as it should; empty if it did. */
  readonly why: string;
  readonly stdout: string;
  readonly stderr: string;
  /** Files with the whole streams, relative to the workspace, if these are cut. */
  readonly files: readonly string[];
  readonly ms?: number;
  /** When its poll starts it again, in epoch milliseconds. */
  readonly nextAt?: number;
  /** What it printed is left out. */
  readonly isWithheld?: true;
}

/** What a state without a model and without a command completed with: an answer, a time, the output of another pipeline. */
export interface AnswerView {
  readonly kind: "answer";
  /** The kind of the state. */
  readonly of: string;
  readonly value: Json;
}

export interface BoundaryItem {
  readonly kind: "boundary";
  /** `attempt` begins the transcript of an attempt; `note` describes an event. */
  readonly rank: "attempt" | "note";
  readonly text: string;
  readonly tone: "plain" | "good" | "bad" | "notice";
}

export interface CallView {
  readonly kind: "call";
  readonly attempt: number;
  readonly turn: number;
  readonly callId: string;
  readonly tool: string;
  /** Undefined if the arguments could not be parsed. */
  readonly input: Json | undefined;
  /** The call on one line, as the gate recorded it. */
  readonly summary?: string;
  readonly state: CallState;
  /** Why it was refused or requires approval. */
  readonly why?: string;
  readonly approvedBy?: string;
  readonly output?: Json;
  readonly ms?: number;
  readonly facts?: Readonly<Record<string, Json>>;
  /** Its arguments, its result and its reasons are left out. */
  readonly isWithheld?: true;
}

/** One call or question that required an answer, or a call that was refused. */
export interface DecisionView {
  readonly kind: "call" | "question";
  readonly runId: string;
  readonly executionId: string;
  readonly attempt: number;
  readonly callId: string;
  /** The call or question on one line. */
  readonly what: string;
  /** Why it required approval, or the cause of the refusal. */
  readonly because: string;
  /** Epoch milliseconds; absent if nothing was requested. */
  readonly requestedAt?: number;
  /** When it was decided. */
  readonly at?: number;
  readonly outcome: "approved" | "answered" | "denied" | "deferred" | "refused" | "expired" | "open" | "unanswered";
  readonly by: string;
  readonly why: string;
  /** SHA-256 of what was decided. */
  readonly digest: string;
  /** Whether the grant was used. */
  readonly used: boolean;
}

/** A message to a run that a model has read. */
export interface MessageView {
  readonly runId: string;
  readonly executionId: string;
  /** The turn before which it was read. */
  readonly turn: number;
  readonly by: string;
  readonly text: string;
  /** `followUp`: it waited for the next execution of an agent. */
  readonly kind: "steer" | "followUp";
  /** Epoch milliseconds. */
  readonly sentAt: number;
}

export interface DeniedCall {
  readonly runId: string;
  readonly executionId: string;
  readonly attempt: number;
  readonly callId: string;
  readonly tool: string;
  readonly cause: string;
}

export interface TimeSpan {
  /** The execution it belongs to; absent for the run as a whole. */
  readonly key?: string;
  /**
   * `sleep`: a state slept. `interrupted`: another execution handled an interrupt. `unknown`: a process ended without a record of
   * it, so what happened until the resume is not known.
   */
  readonly kind: "model" | "tool" | "person" | "pause" | "sleep" | "interrupted" | "suspended" | "unknown";
  readonly label: string;
  /** Epoch milliseconds. */
  readonly from: number;
  /** Absent while it lasts. */
  readonly to?: number;
}

export interface ForkView {
  /** The run that fans out. */
  readonly runId: string;
  readonly fork: string;
  /** States in declared order; of a list, the keys of its items. */
  readonly siblings: readonly string[];
  /** The state that runs once for each item of a list. */
  readonly list?: string;
  /** The branches of a fork, or the pipelines that run; absent for siblings and lists. */
  readonly children?: readonly ForkChild[];
  /** The first branch that completes is enough. */
  readonly any?: true;
  /** The state that it follows; of pipelines that a state runs itself, that state. Empty if unknown. */
  readonly from: string;
  readonly join: string;
  readonly joined: boolean;
  /** How the branches or pipelines ended. */
  readonly outcomes?: ReadonlyMap<string, "completed" | "failed" | "cancelled">;
  /** The branches or pipelines failed, so that the join is not entered. */
  readonly failed?: true;
  /** The state that continues after a failure. */
  readonly onFail?: string;
}

export interface CapView {
  /** The execution; absent for a limit of the run. */
  readonly key?: string;
  /** Such as `state.maxTokens`, `run.maxCostUsd`, `turnCap`. */
  readonly limit: string;
  readonly message: string;
  readonly reached: boolean;
  readonly used?: number;
  readonly max?: number;
}

/** One final item of a run. */
export interface LogItem {
  /** The execution's key; absent for the run as a whole. */
  readonly key?: string;
  /** The state's id, for siblings of a fan-out; the key of a list's item. */
  readonly sibling?: string;
  readonly item: TranscriptItem | RunEndItem;
}

/** What an orchestrator said when its run had ended. */
export interface LastWord {
  readonly text: string;
  /** Whether it asked for another run. */
  readonly asksForRun: boolean;
}

/** Why a run failed. */
export interface ShownError {
  readonly code: string;
  readonly message: string;
  /** Where code of the pipeline threw, relative to the workspace: `src/pipeline.ts:41:9`. */
  readonly at?: string;
}

export interface RunEndItem {
  readonly kind: "end";
  readonly status: "completed" | "failed" | "cancelled";
  /** The final state that ended it. */
  readonly state?: string;
  readonly output?: Json;
  readonly error?: ShownError;
  readonly lastWord?: LastWord;
}
