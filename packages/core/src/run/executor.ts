import type { Json, JsonObject } from "../base/json.ts";
import type { Additions, FailureCode, StageContext, Usage } from "../definition/result.ts";
import type { PipelineSpec, StateSpec } from "../definition/spec.ts";
import type { ProviderFaultPolicy } from "../definition/state-rules.ts";
import type { CallRequest } from "../gate/authorize-call.ts";
import type { SecurityMode } from "../gate/decide.ts";
import type { ResultFile, ToolEffect } from "../gate/subjects.ts";
import type { CallUsage } from "../gate/usage.ts";
import type { EventDraft } from "../journal/events.ts";
import type { SecretFilter } from "../journal/redaction.ts";
import type { RunFault, StepCall, StepOptions } from "../journal/seam.ts";
import type { LegalEvent } from "../machine/legal-events.ts";
import type { RefusedTarget, RouteTarget } from "../machine/route-targets.ts";
import type { Budget, Deadline } from "./limits/limits.ts";

/** Runs states of one kind between their precondition and their assert. Users may register executors of custom kinds. */
export interface StateExecutor {
  readonly kind: string;
  /** Whether its states may start processes without a sandbox: required for `scope.startsUnwalled()`. */
  readonly startsProcesses?: true;
  /** Renders what act needs from the context. The value is recorded; a throw fails the state with code `hook`. */
  init?(state: StateSpec, ctx: StageContext, offer: AvailableTools, place: StatePlace): Json;
  /** Does the work. Runs steps only through the scope, and returns failures as values. */
  act(init: Json, scope: ActScope): Promise<ActOutcome>;
}

/** Where a state stands in its pipeline. */
export interface StatePlace {
  readonly stateId: string;
  /** The events that leave the state; [] for a state that completes without them. */
  readonly events: readonly LegalEvent[];
  /** The states that it may choose, with how often each may still be entered; [] for a state that does not choose. */
  readonly targets: readonly RouteTarget[];
  /** Takes the place of the state's own prompt in this execution. */
  readonly prompt?: string;
  /** Another execution sleeps, which continues if this one completes with `{ return: true }`. */
  readonly returns?: true;
  /** The run has ended, and its input says how. What this execution returns changes no outcome. */
  readonly closing?: true;
}

/** How act ended. The run loop adds execution id, attempts and time. */
export type ActOutcome = ActUsage &
  (
    | { readonly status: "completed"; readonly output: Json; readonly adds?: Additions }
    | { readonly status: "failed"; readonly code: FailureCode; readonly message: string; readonly detail?: Json }
    /** `partial` is what it has done so far, which the next execution reads if a person interrupted this one. */
    | { readonly status: "cancelled"; readonly reason: string; readonly partial?: Json }
    /** A row of the state leads to another one, which gets the request as its input: the `answer` of a person, and whatever it needs. */
    | { readonly status: "paused"; readonly request: Json }
  );
export interface ActUsage {
  readonly turns: number;
  readonly usage: Usage;
  /** Of a state that chooses: what it chose and was refused. */
  readonly refused?: readonly RefusedTarget[];
}

/** A live tool as shown to a model. */
export interface AvailableTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonObject;
  readonly effect: ToolEffect;
  /** Whether a rule of the state's envelope names it. */
  readonly allowed: boolean;
}
/** The state's allowedTools, resolved against the session's live tools. */
export interface AvailableTools {
  readonly tools: readonly AvailableTool[];
  /** The state's patterns as written; undefined without an envelope. */
  readonly allowedTools: readonly string[] | undefined;
}

/** The outcome of a call: exactly one per request, in the same order. */
export interface CallOutcome {
  readonly id: string;
  readonly tool: string;
  readonly ok: boolean;
  /** The result that the model reads. */
  readonly output: Json;
  /** What it reads beside it. */
  readonly files?: readonly ResultFile[];
  /** The model repeated this call so often that the state has to fail. */
  readonly stuck?: boolean;
  /** The interrupts that this call started, whose handlers have returned. The model has to know, since files may have changed. */
  readonly interrupts?: readonly HandledInterrupt[];
}

/** An interrupt that was handled while an execution waited. */
export interface HandledInterrupt {
  readonly interrupt: string;
  /** The changed files that matched, as paths in the workspace; none if it is unknown which files changed. */
  readonly files: readonly string[];
  /** The execution that handled it, such as `review#1`. */
  readonly by: string;
  /** Of that execution, if it completed. */
  readonly output?: Json;
}

/** The answer to an event that a state sends. */
export type Acceptance =
  /** The machine moves when the attempt completes with this output. */
  | { readonly accepted: true; readonly output: Json }
  /** The state continues. `output` says why, and which events are possible; its code is `transition_rejected`. */
  | { readonly accepted: false; readonly output: Json };

/** The answer to a request of a state. */
export type AskOutcome =
  | { readonly answered: true; readonly value: Json; readonly by: string }
  | {
      readonly answered: false;
      readonly cause: "no_interactor" | "timeout" | "denied" | "deferred" | "invalid" | "cancelled";
      readonly reason?: string;
    };

/** Another pipeline to run as a child. */
export interface ChildPipeline {
  /** Unique among the children of one call. */
  readonly key: string;
  /**
   * A key of the pipeline's `pipelines`, or a pipeline: one that the state owns, or one that was made during the run. A resumed run
   * has to give the same one again.
   */
  readonly pipeline: string | PipelineSpec;
  /** The run's input. */
  readonly input: Json;
  /** Merged into its initial context. */
  readonly context?: JsonObject;
}
/** How such a child ended. */
export type ChildOutcome = {
  readonly key: string;
  readonly runId: string;
} /** `context` is the one that it ended with. */ & (
  | { readonly status: "completed"; readonly output: Json; readonly context: JsonObject }
  | { readonly status: "failed" | "cancelled"; readonly code: string; readonly message: string }
);

/** Steps of one attempt. Their ids get the attempt's prefix. */
export interface ScopedSteps {
  readonly incarnation: string;
  run<T extends Json>(stepId: string, fn: (call: StepCall) => Promise<T> | T, options?: StepOptions<T>): Promise<T>;
  now(stepId: string): Promise<number>;
  sleepUntil(stepId: string, epochMs: number): Promise<void>;
  emit(channel: string, chunk: Json): void;
  heard(): boolean;
}

export interface ActScope extends StatePlace {
  readonly steps: ScopedSteps;
  readonly state: StateSpec;
  readonly executionId: string;
  /** As it is now: the handlers of interrupts may have changed the run since the entry. */
  readonly ctx: StageContext;
  /** Turns of this state in earlier attempts and visits. */
  readonly turnsBefore: number;
  readonly offer: AvailableTools;
  /** The variables of the processes that this state starts: the session's without its secrets, with the state's own. */
  readonly env: Readonly<Record<string, string>>;
  /**
   * Has to be called before a process that runs code of a model starts without a sandbox. Such a process could write answers
   * itself, so that answers from other processes need a code from then on. Throws Validation `process_undeclared` unless the executor
   * has `startsProcesses`.
   */
  startsUnwalled(): void;
  readonly budget: Budget;
  readonly deadline: Deadline;
  /** Aborts on cancel, when a person interrupts the execution in a step or before its next one, and when the handler of an interrupt does not return to it. */
  readonly signal: AbortSignal;
  /** What the calls of this execution have used so far, in all its attempts, such as the number of `calls` that ran. */
  used(): CallUsage;
  /** Authorizes and runs calls in order; the only way to run a tool. Rejects after the attempt has ended. */
  calls(turn: number, requests: readonly CallRequest[]): Promise<readonly CallOutcome[]>;
  /**
   * Asks the machine to move by an event, and a person where the row wants that. Once an event is accepted, complete with its
   * output: any other outcome drops it. Rejects after the attempt has ended, and once an event was accepted.
   */
  accept(candidate: {
    readonly turn: number;
    /** The model's call, if there is one, for readers of the events. */
    readonly callId?: string;
    readonly event: string;
    readonly data: JsonObject;
  }): Promise<Acceptance>;
  /**
   * Asks a person, without a concurrency slot and outside every timeout. `name` is unique in the attempt. `question` is what they
   * see: its `question` is text, and its `answer` the JSON Schema of the answer. After `timeoutMs` from when the request was
   * opened, in whatever process, the outcome is `timeout`; people see the deadline as `until` of the question.
   */
  ask(request: {
    readonly name: string;
    readonly question: JsonObject;
    readonly timeoutMs?: number;
  }): Promise<AskOutcome>;
  /** Whether a row leads on from an outcome `paused`. */
  readonly pauses: boolean;
  /** Whether such a row led here from this state, so that the input is the `request` of that outcome. */
  readonly afterPause: boolean;
  /** How the session decides about calls outside of an envelope. */
  readonly mode: SecurityMode;
  /** Absolute paths that nothing of the run may write, besides those protected in every workspace. */
  readonly protectedPaths: readonly string[];
  /**
   * Runs other pipelines as child runs, without a concurrency slot, and returns how they ended, in order. `name` is
   * unique in the attempt.
   */
  runChildren(name: string, children: readonly ChildPipeline[]): Promise<readonly ChildOutcome[]>;
  /** A short wait in this process until an epoch time in milliseconds, without a concurrency slot and outside every timeout. */
  wait(stepId: string, until: number): Promise<void>;
  /**
   * Sleeps until an epoch time in milliseconds, without a concurrency slot and outside every timeout. The process may end meanwhile:
   * the run then continues in another one. `name` is unique in the attempt. Ends early when the run is cancelled. `data` is what the
   * events say of it besides `until` and `sleeps`, the number of the execution's sleeps so far.
   */
  sleep(name: string, until: number, data?: JsonObject): Promise<void>;
  /** What the state does about faults of a provider: its own settings, those of its pipeline, and those of the session. */
  providerFaults(): ProviderFaultPolicy;
  /**
   * Waits, because of a fault that only time or a person can end, until the run is resumed. The run is suspended once nothing else
   * of it can work; the process may end meanwhile. Returns in the process that resumes the run, at `retryAt` if other parts of the
   * run still work in this one then, and early when the run is cancelled: look at `signal`, and try again. Holds no concurrency slot
   * and is outside every timeout. Rejects when the run stops here.
   */
  suspend(fault: RunFault): Promise<void>;
  /**
   * The same object for all executions of a run in this process: a key for what a kind keeps of the run. A resumed run executes
   * every act again over its recorded steps, so a kind builds the same again.
   */
  readonly kept: object;
  /** Masks known secret values in external text. */
  readonly secrets: SecretFilter;
  /** Adds an event to the next record of this attempt. */
  note(draft: Omit<EventDraft, "executionId" | "attempt">): void;
}
