import type { Json, JsonObject } from "../base/json.ts";
import type { PipelineSpec, StateSpec } from "./spec.ts";

/** A Standard Schema (Zod 3, Zod 4, Valibot, ArkType, …), seen from the type it produces. */
export interface StandardSchema<T> {
  readonly "~standard": { readonly types?: { readonly output: T } | undefined };
}
/** Plain JSON Schema (draft-07), whose values are Json to the compiler. */
export interface JsonSchema {
  readonly type: "object";
  readonly [keyword: string]: unknown;
  readonly "~standard"?: never;
}
declare const PLAIN: unique symbol;
/** Anything that can check a value and describe itself to a model. */
export type Schema<T> = StandardSchema<T> | (JsonSchema & { readonly [PLAIN]?: T });

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

// A state carries only what it gives and what it takes: two phantom members, nothing deeper, so that 60 stages still check fast.
declare const OUT: unique symbol;
declare const IN: unique symbol;
/** One node of a pipeline, of a kind that an executor knows how to run. */
export interface State<O = unknown, I = unknown> {
  readonly kind: string;
  /** What the run loop and executors read; not meant to be written by hand. */
  readonly spec: StateSpec;
  readonly [OUT]?: O;
  readonly [IN]?: (input: I) => void;
}
export type AnyState = State<unknown, never>;
export type Out<S> = S extends { readonly [OUT]?: infer O } ? Exclude<O, undefined> : never;
export type In<S> = S extends { readonly [IN]?: (input: infer I) => void } ? I : never;

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

/** What every kind of state may carry; core reads these, executors read their own fields beside them. */
export interface StateCommon<Up, I, O> {
  readonly inputSchema?: Schema<I>;
  /** Patterns of tools inside the envelope. [] = none; omitted = no envelope, the session's mode decides. */
  readonly allowedTools?: readonly AllowedTool[];
  /** Runs once per attempt before anything else; what it returns is `ctx.setup`. */
  readonly setup?: (ctx: StageContext<Up, I>) => Json | Promise<Json>;
  readonly checkGate?: (ctx: StageContext<Up, I>) => GateAnswer | Promise<GateAnswer>;
  readonly assert?: (result: Completed<O> | Failed, ctx: StageContext<Up, I>) => AssertAnswer | Promise<AssertAnswer>;
  /** Teardown. Recorded once, runs at least once: a crash in between runs it again. */
  readonly exit?: (result: StageResult<O>, ctx: StageContext<Up, I>) => void | Promise<void>;
  readonly onCall?: GuardHook;
  readonly retryPolicy?: RetryPolicy;
  readonly limits?: StateLimits;
}
export type GateAnswer = "proceed" | "skip" | { readonly retryAfterMs: number };
export type AssertAnswer = "ok" | { readonly retry: string } | { readonly fail: string };

type Reads<A> = { readonly [K in keyof A]?: Out<A[K]> };

/** A stage as its author writes it. */
export interface StageOptions<A extends Record<string, AnyState>, O, I> extends StateCommon<Reads<A>, I, O> {
  /** States whose outputs the prompt and the hooks read, for their types only. */
  readonly reads?: A;
  /** The system prompt of a fresh transcript: text with `{{ctx.path}}` templates, or a function. */
  readonly prompt: string | ((ctx: StageContext<Reads<A>, I>) => string);
  /** `allowed` (default) offers the model only the envelope's tools; `session` offers all, so that it can propose what needs a grant. The gate is the same. */
  readonly visibility?: "allowed" | "session";
  /** Overrides the session's model for this stage. */
  readonly model?: string;
  readonly temperature?: number;
  /** Per model call. */
  readonly maxOutputTokens?: number;
  /** The tool whose accepted call ends the stage. */
  readonly completionTool: string;
  readonly completionSchema: Schema<O>;
  /** Model calls allowed in one attempt, from 1. */
  readonly turnCap: number;
}
/** A state of a kind of one's own, as its author writes it. */
export interface StateOptions<A extends Record<string, AnyState>, O, I> extends StateCommon<Reads<A>, I, O> {
  /** Finds the executor: one of this kind has to be among the session's `executors`. */
  readonly kind: string;
  /** States whose outputs the hooks read, for their types only. */
  readonly reads?: A;
  /** What the executor reads, as data: it is part of the pipeline's fingerprint. */
  readonly options?: JsonObject;
  /** What leaves the state. An output that does not fit fails it with code `schema`. */
  readonly output: Schema<O>;
}
/** An agent state: an LLM works in it. */
export interface Stage<O, I> extends State<O, I> {
  readonly kind: "agent";
}

// Choices: the target is a literal, the payload rides along, the pipeline checks both.
export interface To<T extends string, I = undefined> {
  readonly kind: "to";
  readonly state: T;
  readonly input: I;
  /** Merged shallowly into `ctx.context` in the same commit as the decision. */
  readonly context?: JsonObject;
}
export interface FanOut<T extends string, J extends string> {
  readonly kind: "fanOut";
  readonly siblings: readonly (T | To<T, unknown>)[];
  readonly join: J;
  /** The join's own input. */
  readonly input?: unknown;
  /** `cancel` (default): one failure cancels the rest and fails the fork; `settle`: all end, the join sees how in `ctx.fork`. */
  readonly onFailure?: "cancel" | "settle";
}
export interface Done<O> {
  readonly kind: "done";
  readonly output: O;
}
export interface Fail {
  readonly kind: "fail";
  readonly reason: string;
}
export interface Cancel {
  readonly kind: "cancel";
  readonly reason: string;
}
/** A choice as a literal: [] = done with the state's own output, one sequential = to, two or more parallel = fanOut. */
export interface StageList<T extends string> {
  readonly stages: readonly T[];
  readonly execution: "sequential" | "parallel";
  readonly join?: T;
}
type AnyTo<S> = { [K in keyof S & string]: To<K, In<S[K]>> }[keyof S & string];
export type Choice<S> =
  | AnyTo<S>
  | FanOut<keyof S & string, keyof S & string>
  | Done<unknown>
  | Fail
  | Cancel
  | StageList<keyof S & string>;
/** A choice whose names are not checked by the compiler: what is left at run time. */
export type AnyChoice =
  | To<string, unknown>
  | FanOut<string, string>
  | Done<unknown>
  | Fail
  | Cancel
  | StageList<string>;

type Up<S> = { readonly [K in keyof S]?: Out<S[K]> };
type Route<Res, S, R, C = Choice<S>> = (result: Res, ctx: StageContext<Up<S>, unknown, R>) => C;
interface ByStatus<O, S, R> {
  readonly completed: Route<Completed<O>, S, R>;
  readonly failed?: Route<Failed, S, R>;
  readonly skipped?: Route<Skipped, S, R>;
}
/** What comes next, by state: a function is the success route; an unhandled failure or skip fails the run. */
export type NextMap<S, R> = {
  readonly [K in keyof S]?: Route<Completed<Out<S[K]>>, S, R> | ByStatus<Out<S[K]>, S, R>;
};
/** One row of a transition table; the first that matches wins. */
export interface Row<S, R> {
  readonly from: (keyof S & string) | "*";
  readonly on: "success" | "failure" | "skipped";
  /** An error here counts as no match and is reported. */
  readonly when?: (result: StageResult<unknown>, ctx: StageContext<Up<S>, unknown, R>) => boolean;
  readonly to: (keyof S & string) | Choice<S>;
}
/** A pipeline as its author writes it, beside how its states follow each other. */
export interface PipelineCommon<R, S> {
  readonly id: string;
  /** What a run takes. Its `task`, when it has one, is `ctx.task`. */
  readonly input: Schema<R>;
  readonly stages: S;
  readonly initial: NoInfer<keyof S & string>;
  /** What `ctx.context` is at the start. {} when omitted. */
  readonly context?: JsonObject;
  readonly limits?: RunLimits;
  /** Asked after the session's and before the stage's own guard hook. */
  readonly onCall?: GuardHook;
}
/** Keys of `next` that are no states are refused by the compiler, too. */
export type NoExtra<N, S> = { readonly [K in Exclude<keyof N, keyof S>]: never };
/** What a pipeline's routes put into done(). */
export type OutputOf<N> = DoneOf<Returned<N[keyof N]>>;
type Returned<F> = F extends (...args: never[]) => infer C
  ? C
  : F extends { readonly completed: (...args: never[]) => infer C }
    ?
        | C
        | (F extends { readonly failed: (...args: never[]) => infer D } ? D : never)
        | (F extends { readonly skipped: (...args: never[]) => infer E } ? E : never)
    : never;
type DoneOf<C> =
  C extends Done<infer O>
    ? O
    : C extends { readonly stages: infer L }
      ? L extends readonly [unknown, ...unknown[]]
        ? never
        : Json
      : never;

/** States, where they start, and how to get from one to the next. Plain data and functions. */
export interface Pipeline<I, O> {
  readonly id: string;
  readonly spec: PipelineSpec;
  readonly [OUT]?: O;
  readonly [IN]?: (input: I) => void;
}
export type AnyPipeline = Pipeline<never, unknown>;
