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

// The specs below are what stage() and pipeline() leave for the run loop and for executors. Their members are methods, so
// that functions over narrower contexts fit: the loop only ever calls them with the context of their own state.

/** What every kind of state leaves; the run loop reads nothing else. */
export interface StateSpec {
  readonly kind: string;
  readonly inputSchema?: CompiledSchema<unknown>;
  readonly allowedTools?: readonly AllowedTool[];
  /** `allowedTools`, compiled; present with it. */
  readonly patterns?: readonly ToolPattern[];
  readonly retryPolicy?: RetryPolicy;
  readonly limits?: StateLimits;
  readonly sandbox?: StateSandbox;
  readonly onCall?: GuardHook;
  /** The fields of an agent state; other kinds keep theirs in `options`. */
  readonly agent?: AgentSpec;
  readonly options?: unknown;
  /** What the output of a kind of somebody's own is held against; an agent state has its completion's. */
  readonly output?: CompiledSchema<unknown>;
  /** What is wrong with the options it was made from, paths relative to the state. A pipeline with any is refused. */
  readonly problems?: readonly Problem[];
  setup?(ctx: StageContext): Json | Promise<Json>;
  precondition?(ctx: StageContext): PreconditionAnswer | Promise<PreconditionAnswer>;
  assert?(result: Completed<unknown> | Failed, ctx: StageContext): AssertAnswer | Promise<AssertAnswer>;
  exit?(result: StageResult<unknown>, ctx: StageContext): void | Promise<void>;
}

export interface AgentSpec {
  /** The template's text, for the fingerprint; empty for a function, whose body is no part of it. */
  readonly promptText: string;
  /** The paths the template names; absent for a function. */
  readonly promptPaths?: readonly TemplatePath[];
  /** The rendered system prompt. Throws SluiceError `prompt_unresolved` when a template names nothing. */
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
  /** What `ctx.context` is at the start. */
  readonly context: JsonObject;
  readonly limits: RunLimits;
  readonly onCall?: GuardHook;
  /** SHA-256 over ids, edges, envelopes, schemas, prompt text and which hooks exist; not over function bodies. */
  readonly fingerprint: string;
}
export type RoutesSpec =
  | { readonly kind: "functions"; readonly next: ReadonlyMap<string, StateRoutes> }
  | { readonly kind: "table"; readonly rows: readonly RowSpec[] };

/** The routes of one state, by how it ended. */
export interface StateRoutes {
  /** Where they may go; known when the author declared each of them with `route()`. */
  readonly targets?: readonly string[];
  completed(result: Completed<unknown>, ctx: StageContext): unknown;
  failed?(result: Failed, ctx: StageContext): unknown;
  skipped?(result: Skipped, ctx: StageContext): unknown;
}
export interface RowSpec {
  readonly from: string;
  readonly on: "success" | "failure" | "skipped";
  when?(result: StageResult<unknown>, ctx: StageContext): boolean;
  readonly to: AnyChoice;
}
