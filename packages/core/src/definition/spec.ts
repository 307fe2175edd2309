import type { Problem } from "../base/errors.ts";
import type { Json, JsonObject } from "../base/json.ts";
import type { CompiledSchema } from "../schema/schema.ts";
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
import type { TemplateReference } from "./template.ts";

// What stage() and pipeline() produce for the run loop and executors. Hooks are methods, so that functions of narrower contexts
// fit: the loop calls them only with their own state's context.

/** What a kind declares about its state. Core knows no more of a kind. */
export interface KindFacts {
  /** For the executor, which alone knows their meaning. */
  readonly options?: unknown;
  /** The schema of its output. */
  readonly output?: CompiledSchema<unknown>;
  /** Whether the executor checks the output; otherwise the run loop does, in a step. */
  readonly checksOutput?: true;
  /** The tool with which a model completes the state. The executor handles its calls, and denials name it. */
  readonly completionTool?: string;
  /** `session`: the executor may call tools that the envelope does not cover. */
  readonly visibility?: "allowed" | "session";
  /** The context paths that its templates read, by the option that holds them. */
  readonly templates?: Readonly<Record<string, readonly TemplateReference[]>>;
  /** What the recorded graph shows of it, such as a cap. */
  readonly shape?: JsonObject & { readonly [K in "id" | "kind" | "targets"]?: never };
  /** What the fingerprint covers of its options and output. Default: both, as a whole. */
  readonly parts?: Readonly<Record<string, Part>>;
}
/** A short text or a number is recorded as it is; a long text, and `data`, as a digest. */
export type Part = string | number | { readonly data: Json } | CompiledSchema<unknown>;

/** A state of any kind. */
export interface StateSpec extends KindFacts {
  readonly kind: string;
  readonly inputSchema?: CompiledSchema<unknown>;
  readonly allowedTools?: readonly AllowedTool[];
  /** `allowedTools`, compiled. */
  readonly patterns?: readonly ToolPattern[];
  readonly retryPolicy?: RetryPolicy;
  readonly limits?: StateLimits;
  readonly sandbox?: StateSandbox;
  readonly onCall?: GuardHook;
  /** Problems of its options, with paths relative to the state. A pipeline with any is refused. */
  readonly problems?: readonly Problem[];
  setup?(ctx: StageContext): Json | Promise<Json>;
  precondition?(ctx: StageContext): PreconditionAnswer | Promise<PreconditionAnswer>;
  assert?(result: Completed<unknown> | Failed, ctx: StageContext): AssertAnswer | Promise<AssertAnswer>;
  exit?(result: StageResult<unknown>, ctx: StageContext): void | Promise<void>;
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
