import type { EventDraft } from "@sluice/core";

/**
 * Observes the runs of a session in this process and provides the context of their calls, such as `openTelemetry()` of
 * `@sluice/stages/opentelemetry`. Methods are called synchronously. What they throw is reported to the session's `onFault` and
 * does not affect runs. Times are epoch milliseconds of the session's clock.
 */
export interface Telemetry {
  /** A run was started or resumed in this process. */
  run(run: ObservedRun): RunTelemetry;
}

export interface ObservedRun {
  readonly runId: string;
  readonly pipeline: string;
  /** The kinds of the pipeline's states, by id. */
  readonly kinds: ReadonlyMap<string, string>;
  /** Whether the run was started earlier and is now resumed. */
  readonly resumed: boolean;
  readonly at: number;
}

/** Observes one run while it is active in this process. Steps that are read back from the journal are not reported. */
export interface RunTelemetry {
  /** A sibling in a fan-out started: a child run of one state of the same pipeline. */
  sibling(runId: string): RunTelemetry;
  /** Called before each step of an attempt. */
  attempt(scope: AttemptScope, at: number): void;
  /** Events that were just recorded, in order, redacted as in the journal. */
  recorded(events: readonly EventDraft[], at: number): void;
  /** Runs a step, including hooks: calls `work` once before it returns. */
  within(work: () => void): void;
  model(call: ObservedModelCall): Activity<ModelCallEnd>;
  /** An approved call begins; its event reports the outcome. */
  tool(call: ObservedToolCall): Activity<undefined>;
  /** The run is no longer active in this process. No method is called afterwards. */
  ended(end: ActivityEnd, at: number): void;
}

export interface AttemptScope {
  /** `plan#1` */
  readonly executionId: string;
  readonly attempt: number;
}

/** A model or tool call in progress. */
export interface Activity<E> {
  /** Calls `work` once before it returns, in the context of the activity. */
  within(work: () => void): void;
  ended(end: E, at: number): void;
}

export interface ObservedModelCall extends AttemptScope {
  readonly turn: number;
  /** From 1, over all attempts of the turn. */
  readonly try: number;
  /** The model's id: `anthropic/claude-…`. */
  readonly model: string;
  readonly temperature?: number;
  readonly topP?: number;
  readonly seed?: number;
  readonly stopSequences?: readonly string[];
  readonly maxOutputTokens?: number;
  readonly at: number;
}
export type ModelCallEnd =
  | {
      readonly ok: true;
      readonly finishReason: string;
      /** Undefined if the provider does not report it. */
      readonly usage: ModelTokens | undefined;
      /** The provider's names, with known secrets masked. */
      readonly responseId?: string;
      readonly responseModel?: string;
    }
  | { readonly ok: false; readonly code: string; readonly aborted: boolean; readonly status?: number };
export interface ModelTokens {
  /** Including cached tokens. */
  readonly input: number;
  /** Including reasoning tokens. */
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly reasoning: number;
}

export interface ObservedToolCall extends AttemptScope {
  /** `t<turn>.c<index>` */
  readonly callId: string;
  readonly tool: string;
  readonly at: number;
}

/** Why a run is no longer active in this process; `stopped` is a fault of the host or the disk. */
export interface ActivityEnd {
  readonly status: "completed" | "failed" | "cancelled" | "suspended" | "stopped";
  /** The code of the failure or fault. */
  readonly code?: string;
}

/** Telemetry failed; runs continue without it. Reported once per session. */
export interface TelemetryFault {
  readonly by: "telemetry";
  readonly message: string;
  readonly cause: unknown;
}
