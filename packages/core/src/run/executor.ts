import type { Json, JsonObject } from "../base/json.ts";
import type { FailureCode, StageContext, Usage } from "../definition/result.ts";
import type { StateSpec } from "../definition/spec.ts";
import type { CallRequest } from "../gate/authorize-call.ts";
import type { ToolEffect } from "../gate/subjects.ts";
import type { CallUsage } from "../gate/usage.ts";
import type { EventDraft } from "../journal/events.ts";
import type { SecretFilter } from "../journal/redaction.ts";
import type { StepCall, StepOptions } from "../journal/seam.ts";
import type { Budget, Deadline } from "./limits/limits.ts";

/** Runs states of one kind between their precondition and their assert. Users may register executors of custom kinds. */
export interface StateExecutor {
  readonly kind: string;
  /** Renders what act needs from the context. The value is recorded; a throw fails the state with code `hook`. */
  init?(state: StateSpec, ctx: StageContext, offer: AvailableTools): Json;
  /** Does the work. Runs steps only through the scope, and returns failures as values. */
  act(init: Json, scope: ActScope): Promise<ActOutcome>;
}

/** How act ended. The run loop adds execution id, attempts and time. */
export type ActOutcome = ActUsage &
  (
    | { readonly status: "completed"; readonly output: Json }
    | { readonly status: "failed"; readonly code: FailureCode; readonly message: string; readonly detail?: Json }
    | { readonly status: "cancelled"; readonly reason: string }
  );
export interface ActUsage {
  readonly turns: number;
  readonly usage: Usage;
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
  /** The model repeated this call so often that the state has to fail. */
  readonly stuck?: boolean;
}

/** Steps of one attempt. Their ids get the attempt's prefix. */
export interface ScopedSteps {
  readonly incarnation: string;
  run<T extends Json>(stepId: string, fn: (call: StepCall) => Promise<T> | T, options?: StepOptions<T>): Promise<T>;
  now(stepId: string): Promise<number>;
  sleepUntil(stepId: string, epochMs: number): Promise<void>;
  emit(channel: string, chunk: Json): void;
  heard(): boolean;
}

export interface ActScope {
  readonly steps: ScopedSteps;
  readonly state: StateSpec;
  readonly stateId: string;
  readonly executionId: string;
  readonly ctx: StageContext;
  /** Turns of this state in earlier attempts and visits. */
  readonly turnsBefore: number;
  readonly offer: AvailableTools;
  readonly budget: Budget;
  readonly deadline: Deadline;
  /** Aborts on cancel. */
  readonly signal: AbortSignal;
  /** What the calls of this execution have used so far, in all its attempts, such as the number of `calls` that ran. */
  readonly used: CallUsage;
  /** Authorizes and runs calls in order; the only way to run a tool. Rejects after the attempt has ended. */
  calls(turn: number, requests: readonly CallRequest[]): Promise<readonly CallOutcome[]>;
  /** Waits until an epoch time in milliseconds, without a concurrency slot and outside every timeout. */
  wait(stepId: string, until: number): Promise<void>;
  /** Masks known secret values in external text. */
  readonly secrets: SecretFilter;
  /** Adds an event to the next record of this attempt. */
  note(draft: Omit<EventDraft, "executionId" | "attempt">): void;
}
