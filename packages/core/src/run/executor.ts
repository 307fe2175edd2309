import type { Json, JsonObject } from "../base/json.ts";
import type { FailureCode, StageContext, Usage } from "../definition/result.ts";
import type { StateSpec } from "../definition/spec.ts";
import type { ToolEffect } from "../gate/subjects.ts";
import type { EventDraft } from "../journal/events.ts";
import type { SecretFilter } from "../journal/redaction.ts";
import type { StepCall, StepOptions } from "../journal/seam.ts";
import type { Limits } from "./limits/limits.ts";

/** Runs states of one kind between their gate and their assert. Found by kind in a table; users may add to it. */
export interface StateExecutor {
  readonly kind: string;
  /** What act will need, rendered from the context and recorded. A throw fails the state with code `hook`. */
  init?(state: StateSpec, ctx: StageContext, offer: AvailableTools): Json;
  /** The work. Takes steps only through the scope; returns failures as values. */
  act(init: Json, scope: ActScope): Promise<ActOutcome>;
}

/** How act ended. The run loop adds what it knows itself: execution id, attempts, time. */
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

/** A live tool as a model may be shown it. */
export interface AvailableTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonObject;
  readonly effect: ToolEffect;
  /** Whether the state's envelope names it. */
  readonly allowed: boolean;
}
/** What Setup resolved: the state's allowedTools against the session's live tools. */
export interface AvailableTools {
  readonly tools: readonly AvailableTool[];
  /** The state's patterns as written; undefined without an envelope. */
  readonly allowedTools: readonly string[] | undefined;
}

/** One call a model asks for, as its executor read it. */
export interface CallRequest {
  /** `t<turn>.c<index>`. */
  readonly id: string;
  readonly tool: string;
  /** Absent when the arguments could not be read; then `inputFault` says why. */
  readonly input?: Json;
  readonly inputFault?: {
    readonly code: "invalid_tool_input" | "truncated_call";
    readonly message: string;
    /** What was sent, as far as it is known: two unreadable calls are the same only when these are. */
    readonly raw?: string;
  };
}
/** What came of a call: always exactly one per request, in the order asked. */
export interface CallOutcome {
  readonly id: string;
  readonly tool: string;
  readonly ok: boolean;
  /** What goes back to the model. */
  readonly output: Json;
  /** The same call came so often in a row that the state has to fail. */
  readonly stuck?: boolean;
}

/** Steps of one attempt: ids are prefixed, and noted events ride along with the next record. */
export interface ScopedSteps {
  readonly incarnation: string;
  run<T extends Json>(stepId: string, fn: (call: StepCall) => Promise<T> | T, options?: StepOptions): Promise<T>;
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
  /** Turns of this state before this attempt: of earlier attempts and visits of the run. */
  readonly turnsBefore: number;
  readonly offer: AvailableTools;
  readonly limits: Limits;
  /** Aborts on cancel. */
  readonly signal: AbortSignal;
  /** Judges, asks about and runs calls, in order; the only way to run a tool. Rejects once the attempt is over. */
  calls(turn: number, requests: readonly CallRequest[]): Promise<readonly CallOutcome[]>;
  /** Waits with the state's place in the session given free, outside every timeout. */
  wait(stepId: string, until: number): Promise<void>;
  /** Replaces known secret values in what comes from outside. */
  readonly secrets: SecretFilter;
  /** An event that goes into the next record of this attempt. */
  note(draft: Omit<EventDraft, "executionId" | "attempt">): void;
}
