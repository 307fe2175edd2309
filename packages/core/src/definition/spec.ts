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
  ProviderFaultOptions,
  RetryPolicy,
  RunLimits,
  StateEnvironment,
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
  /** The names of the outputs of its parts, which are upstream beside those of states. */
  readonly adds?: readonly string[];
  /** Whether the executor checks the output; otherwise the run loop does, in a step. */
  readonly checksOutput?: true;
  /** The tool with which a model completes the state. The executor handles its calls, and denials name it. */
  readonly completionTool?: string;
  /** Its executor's other tools, whose calls it handles too. */
  readonly ownTools?: readonly string[];
  /** The state completes by an event of a table's row instead of an output of its own. */
  readonly completesByEvents?: true;
  /** The state names the one that follows: its completed output is its route, so it has no other. */
  readonly chooses?: RouteChooser;
  /** Whether its executor is asked once more when the run has ended. */
  readonly acknowledges?: true;
  /** Whether a choice may replace its prompt for one execution, where the pipeline allows it. */
  readonly takesPrompt?: true;
  /** `session`: the executor may call tools that the envelope does not cover. */
  readonly visibility?: "allowed" | "session";
  /** The pipelines that its executor runs: keys of the pipeline's `pipelines`, and what they have to be, if it matters. */
  readonly runs?: readonly { readonly pipeline: string; readonly spec?: PipelineSpec }[];
  /** Pipelines of its own that its executor runs, besides those of `pipelines`. */
  readonly owns?: readonly PipelineSpec[];
  /** Models that pipelines may name which its executor makes during the run; `[]` for the session's only. Their keys are known secrets. */
  readonly models?: readonly string[];
  /** The context paths that its templates read, by the option that holds them. */
  readonly templates?: Readonly<Record<string, readonly TemplateReference[]>>;
  /** What the recorded graph shows of it, such as a cap. */
  readonly shape?: JsonObject & { readonly [K in "id" | "kind" | "targets"]?: never };
  /** What the fingerprint covers of its options and output. Default: both, as a whole. */
  readonly parts?: Readonly<Record<string, Part>>;
}
/** What a state may choose that names the one that follows. Its completed output is a `ChosenRoute`. */
export interface RouteChooser {
  /** The states that it may name. */
  readonly targets: readonly string[];
  /** Where the run continues if the state fails. */
  readonly fallback?: RouteFallback;
  /** It may also end the run. */
  readonly ends?: true;
  /** Its choice may replace the prompt of one execution. */
  readonly prompts?: true;
}
export interface RouteFallback {
  readonly to: string;
  readonly input?: Json;
}
/** The output of a state that names the one that follows. A type alias, since outputs are JSON. */
export type ChosenRoute = {
  readonly to: string;
  readonly input?: Json;
  /** Why, in the words of the model. */
  readonly reason?: string;
  /** Replaces the prompt of the execution that follows. */
  readonly prompt?: string;
};
/** The output of a state that ends the run, where `ends` allows it. */
export type ChosenEnd = { readonly end: FinalOutcome; readonly output?: Json; readonly reason?: string };

/** A short text or a number is recorded as it is; a long text, and `data`, as a digest. */
export type Part = string | number | { readonly data: Json } | CompiledSchema<unknown>;

/** How a run ends that enters a final state. */
export type FinalOutcome = "completed" | "failed" | "cancelled";

/** A state of any kind. */
export interface StateSpec extends KindFacts, ProviderFaultOptions {
  readonly kind: string;
  /** Of a final state, whose kind is `final`: entering it ends the run, and it has no body. */
  readonly final?: { readonly outcome: FinalOutcome };
  readonly inputSchema?: CompiledSchema<unknown>;
  /** The states whose outputs its templates and hooks read, as its author says. */
  readonly reads?: readonly string[];
  readonly allowedTools?: readonly AllowedTool[];
  /** `allowedTools`, compiled. */
  readonly patterns?: readonly ToolPattern[];
  readonly retryPolicy?: RetryPolicy;
  readonly limits?: StateLimits;
  readonly sandbox?: StateSandbox;
  readonly env?: StateEnvironment;
  readonly onCall?: GuardHook;
  /** Problems of its options, with paths relative to the state. A pipeline with any is refused. */
  readonly problems?: readonly Problem[];
  setup?(ctx: StageContext): Json | Promise<Json>;
  precondition?(ctx: StageContext): PreconditionAnswer | Promise<PreconditionAnswer>;
  assert?(result: Completed<unknown> | Failed, ctx: StageContext): AssertAnswer | Promise<AssertAnswer>;
  exit?(result: StageResult<unknown>, ctx: StageContext): void | Promise<void>;
}

/** What the author of a pipeline says about it, for people and reports. Its runs depend only on `onFinal`. */
export interface PipelineMeta {
  /** How risky it is. Shown with its runs. */
  readonly dangerLevel?: "safe" | "moderate" | "dangerous";
  /** `false`: reports leave out prompts, texts, arguments and results. The journal has them. */
  readonly captureOutput?: boolean;
  /**
   * `release`: an agent of another program that keeps its own tools may use them freely once the run has completed. Otherwise its
   * calls are refused then.
   */
  readonly onFinal?: "release";
}

export interface PipelineSpec extends ProviderFaultOptions {
  readonly id: string;
  readonly input: CompiledSchema<unknown>;
  readonly states: ReadonlyMap<string, StateSpec>;
  readonly initial: string;
  readonly routes: RoutesSpec;
  /** The initial `ctx.context`. */
  readonly context: JsonObject;
  readonly limits: RunLimits;
  readonly onCall?: GuardHook;
  readonly interrupts: readonly InterruptSpec[];
  /** The state that chooses what follows every other state; absent if routes do. */
  readonly orchestrator?: string;
  /** The pipelines that `invoke()` and child runs name. */
  readonly pipelines: ReadonlyMap<string, PipelineSpec>;
  readonly meta?: PipelineMeta;
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
  /** Absent for a state that names what follows itself. */
  completed?(result: Completed<unknown>, ctx: StageContext): unknown;
  failed?(result: Failed, ctx: StageContext): unknown;
  skipped?(result: Skipped, ctx: StageContext): unknown;
}
/**
 * What a row waits for: how the state's execution ended, or an event that its agent sends. The event `*` is any that no other
 * row of the state names.
 */
export type RowTrigger = "success" | "failure" | "skipped" | "pause" | { readonly event: string };
export interface RowSpec {
  /** A state, or `*` for every state. */
  readonly from: string;
  readonly on: RowTrigger;
  readonly when?: Guard;
  readonly to: AnyChoice;
  /** The input of the state that `to` names, in place of the one of the choice. */
  input?(result: StageResult<unknown>, ctx: StageContext): unknown;
  /** A person has to approve the move. */
  readonly approval?: { readonly message?: string };
  /** Names the row for people, such as `DEPLOY[0]`. */
  readonly label?: string;
}
/** A detour that a changed file starts. */
export interface InterruptSpec {
  readonly name: string;
  /** A pattern of paths in the workspace, as in the scope of a tool pattern. */
  readonly files: string;
  /** The state that handles it. */
  readonly target: string;
}

/** The condition of a row. A function is one maker of it. */
export interface Guard {
  /** The condition as people read it. */
  readonly text: string;
  /** The text does not say what it decides, like the name of a function. The fingerprint then covers only that it is there. */
  readonly opaque?: true;
  /** All that it decides by, where the text is cut or could be that of another guard. The fingerprint then covers this. */
  readonly source?: string;
  /** A throw counts as a condition that does not fire. */
  evaluate(scope: GuardScope): GuardVerdict | Promise<GuardVerdict>;
}
export interface GuardScope {
  /** For an event: completed, with the output `{ event, data }`. */
  readonly result: StageResult<unknown>;
  readonly ctx: StageContext;
}
export interface GuardVerdict {
  /** Only `true` fires. */
  readonly fires: boolean;
  /** Why it does not, as in "row 2: its condition returned false". */
  readonly why: string;
}
