import type { Json, JsonObject } from "../base/json.ts";
import type { Schema } from "../schema/schema.ts";
import type { Cancel, Done, Fail, FanOut, StageList, To } from "./choice.ts";
import type { Completed, Failed, Skipped, StageContext, StageResult } from "./result.ts";
import type { PipelineSpec, StateSpec } from "./spec.ts";
import type {
  AllowedTool,
  AssertAnswer,
  GuardHook,
  PreconditionAnswer,
  RetryPolicy,
  RunLimits,
  StateLimits,
  StateSandbox,
} from "./state-rules.ts";

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

/** What every kind of state may carry; core reads these, executors read their own fields beside them. */
export interface StateCommon<Up, I, O> {
  readonly inputSchema?: Schema<I>;
  /** Patterns of tools inside the envelope. [] = none; omitted = no envelope, the session's mode decides. */
  readonly allowedTools?: readonly AllowedTool[];
  /** Runs once per attempt before anything else; what it returns is `ctx.setup`. */
  readonly setup?: (ctx: StageContext<Up, I>) => Json | Promise<Json>;
  readonly precondition?: (ctx: StageContext<Up, I>) => PreconditionAnswer | Promise<PreconditionAnswer>;
  readonly assert?: (result: Completed<O> | Failed, ctx: StageContext<Up, I>) => AssertAnswer | Promise<AssertAnswer>;
  /** Teardown. Recorded once, runs at least once: a crash in between runs it again. */
  readonly exit?: (result: StageResult<O>, ctx: StageContext<Up, I>) => void | Promise<void>;
  readonly onCall?: GuardHook;
  readonly retryPolicy?: RetryPolicy;
  readonly limits?: StateLimits;
  readonly sandbox?: StateSandbox;
}
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

type AnyTo<S> = { [K in keyof S & string]: To<K, In<S[K]>> }[keyof S & string];
export type Choice<S> =
  | AnyTo<S>
  | FanOut<keyof S & string, keyof S & string>
  | Done<unknown>
  | Fail
  | Cancel
  | StageList<keyof S & string>;
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
export type Exact<N, S> = { readonly [K in Exclude<keyof N, keyof S>]: never };
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
