import type { Json, JsonObject } from "../base/json.ts";
import type { Schema } from "../schema/schema.ts";
import type { Cancel, Done, Fail, FanOut, ForEachOneOf, Fork, Invoke, Return, StageList, ToOneOf } from "./choice.ts";
import type { Completed, Failed, Skipped, StageContext, StageResult } from "./result.ts";
import type { ChosenRoute, Guard, PipelineMeta, PipelineSpec, RouteFallback, RowTrigger, StateSpec } from "./spec.ts";
import type {
  AllowedTool,
  AssertAnswer,
  GuardHook,
  PreconditionAnswer,
  ProviderFaultOptions,
  RetryPolicy,
  RunLimits,
  StateEnvironment,
  StateLimits,
  StateSandbox,
} from "./state-rules.ts";

// A state's type carries only its output and input, in two phantom members, so that 60 stages type-check fast.
declare const OUT: unique symbol;
declare const IN: unique symbol;
/** One node of a pipeline, of a kind that has an executor. */
export interface State<O = unknown, I = unknown> {
  readonly kind: string;
  /** For the run loop and executors; not written by hand. */
  readonly spec: StateSpec;
  readonly [OUT]?: O;
  readonly [IN]?: (input: I) => void;
}
export type AnyState = State<unknown, never>;
export type AnyStates = Readonly<Record<string, AnyState>>;
export type Out<S> = S extends { readonly [OUT]?: infer O } ? Exclude<O, undefined> : never;
export type In<S> = S extends { readonly [IN]?: (input: infer I) => void } ? I : never;

/** The options of every kind of state. */
export interface StateCommon<Up, I, O> extends ProviderFaultOptions {
  readonly inputSchema?: Schema<I>;
  /** Patterns of tools in the envelope. [] allows none; if omitted, there is no envelope and the session's mode decides. */
  readonly allowedTools?: readonly AllowedTool[];
  /** Runs first in each attempt; its result is `ctx.setup`. */
  readonly setup?: (ctx: StageContext<Up, I>) => Json | Promise<Json>;
  readonly precondition?: (ctx: StageContext<Up, I>) => PreconditionAnswer | Promise<PreconditionAnswer>;
  readonly assert?: (result: Completed<O> | Failed, ctx: StageContext<Up, I>) => AssertAnswer | Promise<AssertAnswer>;
  /** Teardown. Runs at least once, and again after a crash before its record. */
  readonly exit?: (result: StageResult<O>, ctx: StageContext<Up, I>) => void | Promise<void>;
  readonly onCall?: GuardHook;
  readonly retryPolicy?: RetryPolicy;
  readonly limits?: StateLimits;
  readonly sandbox?: StateSandbox;
  /** The variables of the processes that its calls start. */
  readonly env?: StateEnvironment;
}
/** The outputs of the states that `reads` names. */
export type Reads<A> = { readonly [K in keyof A]?: Out<A[K]> };

/** How much a model may reason before it answers, from least to most. */
export const REASONING_EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh"] as const;
export type ReasoningEffort = (typeof REASONING_EFFORTS)[number];
/** Whether the model has to call a tool in every turn. */
export const TOOL_CHOICES = ["auto", "required"] as const;
export type ToolChoice = (typeof TOOL_CHOICES)[number];

/** How a state calls its model. A setting that the model does not support is left out, and a `model.warned` event says so. */
export interface ModelSettings {
  /** Overrides the session's model for this state. */
  readonly model?: string;
  /** Models that take its place, in this order, when the provider of the one before fails for long. */
  readonly fallbackModels?: readonly string[];
  readonly temperature?: number;
  /** Nucleus sampling: the share of the probability from which tokens are drawn, above 0 and up to 1. Set it or `temperature`. */
  readonly topP?: number;
  /** A whole number. Calls with the same seed and prompt get the same reply, as far as the provider can. */
  readonly seed?: number;
  /** Texts at which the model stops. The reply ends before them. */
  readonly stopSequences?: readonly string[];
  /** Per model call. */
  readonly maxOutputTokens?: number;
  /** The effort of a reasoning model. Default: the provider's. */
  readonly reasoning?: ReasoningEffort;
  /** `auto` (default): the model may answer with text alone. `required`: it has to call a tool in every turn. */
  readonly toolChoice?: ToolChoice;
  /** Options of the provider's package, by provider. Those that let a provider run tools or keep state are refused. */
  readonly providerOptions?: Readonly<Record<string, JsonObject>>;
  /** Whether the provider may cache the prompt for a few minutes at a lower price. Default: true. */
  readonly cache?: boolean;
}

/** The options of a stage. */
export interface StageOptions<A extends Record<string, AnyState>, O, I>
  extends StateCommon<Reads<A>, I, O>,
    ModelSettings {
  /** States whose outputs the prompt and the hooks read. Only their types are used. */
  readonly reads?: A;
  /** The system prompt: text with `{{ctx.path}}` templates, or a function. */
  readonly prompt: string | ((ctx: StageContext<Reads<A>, I>) => string);
  /** `allowed` (default): the model sees only the envelope's tools. `session`: it sees all, and calls outside the envelope need a grant. */
  readonly visibility?: "allowed" | "session";
  /** The tool whose accepted call ends the stage. */
  readonly completionTool: string;
  readonly completionSchema: Schema<O>;
  /** Model calls allowed in one attempt, from 1. */
  readonly turnCap: number;
}
/** The options of a stage that completes by an event of its rows. */
export interface EventStageOptions<A extends Record<string, AnyState>, I>
  extends Omit<StageOptions<A, EventOutput, I>, "completionTool" | "completionSchema"> {
  readonly completionTool?: never;
  readonly completionSchema?: never;
}
/** The output of a stage that completed by an event. A type alias, since outputs are JSON. */
export type EventOutput = { readonly event: string; readonly data: JsonObject };
/** A state that names the one that follows. Its completed output is its route, so `next` routes only other results. */
export interface ChoosingState<T extends string, I> extends State<ChosenRoute, I> {
  /** The states that it may name. */
  readonly targets: readonly T[];
}
/** The options of a state of a custom kind. */
export interface StateOptions<A extends Record<string, AnyState>, O, I> extends StateCommon<Reads<A>, I, O> {
  /** The session's `executors` must have one of this kind. */
  readonly kind: string;
  /** States whose outputs the hooks read. Only their types are used. */
  readonly reads?: A;
  /** Data for the executor; part of the pipeline's fingerprint. */
  readonly options?: JsonObject;
  /** The schema of its output. An output that does not fit fails the state with code `schema`. */
  readonly output: Schema<O>;
}
/** An agent state. */
export interface Stage<O, I> extends State<O, I> {
  readonly kind: "agent";
}

/** What each state takes. */
type Takes<S> = { readonly [K in keyof S & string]: (input: In<S[K]>) => void };
export type Choice<S> =
  | ToOneOf<keyof S & string, Takes<S>>
  | ForEachOneOf<keyof S & string, keyof S & string, Takes<S>>
  | FanOut<keyof S & string, keyof S & string>
  | Fork<keyof S & string>
  | Invoke<keyof S & string>
  | Return
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
/** The routes of a state that names what follows itself. */
type ByOtherStatus<O, S, R> = Omit<ByStatus<O, S, R>, "completed"> & { readonly completed?: never };
/** The routes by state. A function is the success route; an unhandled failure or skip fails the run. */
export type NextMap<S, R> = {
  readonly [K in keyof S]?: S[K] extends { readonly targets: readonly string[] }
    ? ByOtherStatus<Out<S[K]>, S, R>
    : Route<Completed<Out<S[K]>>, S, R> | ByStatus<Out<S[K]>, S, R>;
};
/** One row of a transition table; the first that matches wins. */
export interface Row<S, R> {
  readonly from: (keyof S & string) | "*";
  /** `pause`: a state that asks a person leads to `to`, whose input then has the `answer`. `{ event }`: a stage without a completion tool sends it. */
  readonly on: RowTrigger;
  /** An error counts as no match and is reported. */
  readonly when?: ((result: StageResult<unknown>, ctx: StageContext<Up<S>, unknown, R>) => boolean) | Guard;
  readonly to: (keyof S & string) | Choice<S>;
  /** The input of the state that `to` names. An error is a failure of the run. */
  readonly input?: (result: StageResult<unknown>, ctx: StageContext<Up<S>, unknown, R>) => unknown;
  /** A person has to approve the move. The message is part of the question. */
  readonly approval?: { readonly message?: string };
  /** Names the row for people, such as `DEPLOY[0]`. */
  readonly label?: string;
}
/** A detour: a change of a file that matches suspends the execution, and `target` handles it. */
export interface Interrupt<S> {
  /** A pattern of paths in the workspace, such as `src/auth/**`. */
  readonly files: string;
  /** The state that handles it, with the input `{ interrupt, files }`. `backToInterrupted()` continues the suspended execution. */
  readonly target: NoInfer<keyof S & string>;
}
/** A model that chooses what follows every state. It keeps one transcript over the whole run. */
export interface OrchestratorOptions extends ModelSettings {
  /** What the model has to achieve and how: text with `{{ctx.path}}` templates, or a function. Rendered once, when it first chooses. */
  readonly instructions: string | ((ctx: StageContext) => string);
  /** Model calls allowed for one choice. Default: 8. */
  readonly maxTurnsPerChoice?: number;
  /** Whether a choice may replace the prompt of one execution of a stage. Default: false. */
  readonly allowPromptOverride?: boolean;
  /** Whether it is asked for a closing text when the run has ended. Default: true. */
  readonly acknowledges?: boolean;
  /** Where the run continues the first time that it does not choose. Without it, the run fails with code `orchestrator`. */
  readonly fallback?: RouteFallback;
}
/** A target that is not a state of the pipeline is a compile error; a list made at run time is checked when it is defined. */
export type TargetsWithin<S> = {
  readonly [K in keyof S]: S[K] extends { readonly targets: readonly (infer T)[] }
    ? string extends T
      ? unknown
      : [T] extends [keyof S]
        ? unknown
        : { readonly targets: readonly (keyof S & string)[] }
    : unknown;
};
/**
 * The transitions of a pipeline: functions, a table, or a model. `initial` says only where it is required: with its type, the
 * compiler would tell these three apart by it, and would no longer infer the types of rows.
 */
export type Transitions<R, S, N> =
  | {
      readonly initial: unknown;
      readonly next: N & Exact<N, S>;
      readonly transitions?: never;
      readonly orchestrator?: never;
    }
  | {
      readonly initial: unknown;
      readonly transitions: readonly Row<NoInfer<S>, R>[];
      readonly next?: never;
      readonly orchestrator?: never;
    }
  | {
      readonly initial?: unknown;
      readonly orchestrator: OrchestratorOptions;
      readonly next?: never;
      readonly transitions?: never;
    };
/** The options of a pipeline besides its initial state and its transitions. */
export interface PipelineCommon<R, S> extends ProviderFaultOptions {
  readonly id: string;
  /** The schema of a run's input. Its `task`, if any, is `ctx.task`. */
  readonly input: Schema<R>;
  readonly stages: S;
  /** Only an orchestrated pipeline may leave it out: its orchestrator then chooses the first state. */
  readonly initial?: NoInfer<keyof S & string>;
  /** The initial `ctx.context`. Default: {}. */
  readonly context?: JsonObject;
  readonly limits?: RunLimits;
  /** Called after the session's guard hook and before the stage's. */
  readonly onCall?: GuardHook;
  /** By name. */
  readonly interrupts?: Readonly<Record<string, Interrupt<S>>>;
  /** The pipelines that `invoke()` names. */
  readonly pipelines?: Readonly<Record<string, AnyPipeline>>;
  /** For people and reports. */
  readonly meta?: PipelineMeta;
}
/** Makes unknown keys of `next` a compile error. */
export type Exact<N, S> = { readonly [K in Exclude<keyof N, keyof S>]: never };
/** The type that a pipeline's routes pass to done(). */
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

/** A pipeline defines states, an initial state and transitions. */
export interface Pipeline<I, O> {
  readonly id: string;
  readonly spec: PipelineSpec;
  readonly [OUT]?: O;
  readonly [IN]?: (input: I) => void;
}
export type AnyPipeline = Pipeline<never, unknown>;
