import type { Problem } from "../base/errors.ts";
import type { Json, JsonObject } from "../base/json.ts";
import type { CompiledSchema } from "../schema/schema.ts";
import type { TemplatePath } from "../schema/schema-path.ts";
import type { AnyChoice } from "./choice.ts";
import type { ToolPattern } from "./patterns/tool-pattern.ts";
import type { Completed, Failed, Skipped, StageContext, StageResult } from "./result.ts";
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

// What stage() and pipeline() produce for the run loop and executors. Hooks are methods, so that functions of narrower contexts
// fit: the loop calls them only with their own state's context.

/** A state of any kind. */
export interface StateSpec {
  readonly kind: string;
  readonly inputSchema?: CompiledSchema<unknown>;
  readonly allowedTools?: readonly AllowedTool[];
  /** `allowedTools`, compiled. */
  readonly patterns?: readonly ToolPattern[];
  readonly retryPolicy?: RetryPolicy;
  readonly limits?: StateLimits;
  readonly sandbox?: StateSandbox;
  readonly onCall?: GuardHook;
  /** The fields of an agent state; other kinds keep theirs in `options`. */
  readonly agent?: AgentSpec;
  readonly options?: unknown;
  /** The output schema of a custom kind; an agent state has its completion's. */
  readonly output?: CompiledSchema<unknown>;
  /** Problems of its options, with paths relative to the state. A pipeline with any is refused. */
  readonly problems?: readonly Problem[];
  setup?(ctx: StageContext): Json | Promise<Json>;
  precondition?(ctx: StageContext): PreconditionAnswer | Promise<PreconditionAnswer>;
  assert?(result: Completed<unknown> | Failed, ctx: StageContext): AssertAnswer | Promise<AssertAnswer>;
  exit?(result: StageResult<unknown>, ctx: StageContext): void | Promise<void>;
}

export interface AgentSpec {
  /** The template's text for the fingerprint; empty for a function. */
  readonly promptText: string;
  /** The paths the template names; absent for a function. */
  readonly promptPaths?: readonly TemplatePath[];
  /** The rendered system prompt. Throws Validation `prompt_unresolved` for a template path that does not exist. */
  prompt(ctx: StageContext): string;
  readonly visibility: "allowed" | "session";
  readonly model?: string;
  readonly temperature?: number;
  readonly maxOutputTokens?: number;
  readonly completionTool: string;
  readonly completionSchema: CompiledSchema<unknown>;
  readonly turnCap: number;
}

export interface PipelineSpec {
  readonly id: string;
  readonly input: CompiledSchema<unknown>;
  readonly states: ReadonlyMap<string, StateSpec>;
  readonly initial: string;
  readonly routes: RoutesSpec;
  /** The initial `ctx.context`. */
  readonly context: JsonObject;
  readonly limits: RunLimits;
  readonly onCall?: GuardHook;
  /** SHA-256 over ids, edges, envelopes, schemas, prompt text and which hooks exist; not over function bodies. */
  readonly fingerprint: string;
}
export type RoutesSpec =
  | { readonly kind: "functions"; readonly next: ReadonlyMap<string, StateRoutes> }
  | { readonly kind: "table"; readonly rows: readonly RowSpec[] };

/** The routes of one state, by its result's status. */
export interface StateRoutes {
  /** Their targets; known if each of them was declared with `route()`. */
  readonly targets?: readonly string[];
  completed(result: Completed<unknown>, ctx: StageContext): unknown;
  failed?(result: Failed, ctx: StageContext): unknown;
  skipped?(result: Skipped, ctx: StageContext): unknown;
}
export interface RowSpec {
  readonly from: string;
  readonly on: "success" | "failure" | "skipped";
  readonly when?: Guard;
  readonly to: AnyChoice;
}

/** The condition of a row. A function is one maker of it. */
export interface Guard {
  /** The condition as people read it. */
  readonly text: string;
  /** A throw counts as a condition that does not fire. */
  evaluate(scope: GuardScope): GuardVerdict | Promise<GuardVerdict>;
}
export interface GuardScope {
  readonly result: StageResult<unknown>;
  readonly ctx: StageContext;
}
export interface GuardVerdict {
  /** Only `true` fires. */
  readonly fires: boolean;
  /** Why it does not, as in "row 2: its condition returned false". */
  readonly why: string;
}
