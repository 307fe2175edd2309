import type { EventDraft } from "@sluice/core";

/**
 * Whoever follows the runs of a session as they work here, and in whose context their calls run; `openTelemetry()` of
 * `@sluice/stages/opentelemetry` is one. Every method is called at once, where the thing happens; what one throws is told to
 * the session's `onFault`, and changes nothing of a run. All times are epoch milliseconds, by the session's clock.
 */
export interface Telemetry {
  /** A run begins to work here: it was started, or taken up again. */
  run(run: ObservedRun): RunTelemetry;
}

export interface ObservedRun {
  readonly runId: string;
  readonly pipeline: string;
  /** The kinds of the pipeline's states, by id. */
  readonly kinds: ReadonlyMap<string, string>;
  /** Whether an earlier process, or an earlier stay in this one, began it. */
  readonly resumed: boolean;
  readonly at: number;
}

/** One run for as long as it works here. Steps that are only read back from the record are not told. */
export interface RunTelemetry {
  /** A sibling of a fork begins to work: a run of its own, with one state of the same pipeline. */
  sibling(runId: string): RunTelemetry;
  /** Something of this attempt is about to be done; told before each of its steps. */
  attempt(place: AttemptScope, at: number): void;
  /** Events that were just recorded, in order, with secrets replaced as in the record. */
  recorded(events: readonly EventDraft[], at: number): void;
  /** Runs what a step does, hooks among it: calls `work` once, before it returns. */
  within(work: () => void): void;
  model(call: ObservedModelCall): Activity<ModelCallEnd>;
  /** An approved call begins; what came of it is told by its event. */
  tool(call: ObservedToolCall): Activity<undefined>;
  /** The run works here no more. The last call. */
  ended(end: ActivityEnd, at: number): void;
}

export interface AttemptScope {
  /** `plan#1` */
  readonly executionId: string;
  readonly attempt: number;
}

/** Something that takes its time, and may ask others. */
export interface Activity<E> {
  /** Begins the work: calls `work` once, before it returns. What `work` begins runs in the activity's context. */
  within(work: () => void): void;
  ended(end: E, at: number): void;
}

export interface ObservedModelCall extends AttemptScope {
  readonly turn: number;
  /** Counted from 1 over the tries of the turn. */
  readonly try: number;
  /** As records call it: `anthropic/claude-…`. */
  readonly model: string;
  readonly temperature?: number;
  readonly maxOutputTokens?: number;
  readonly at: number;
}
export type ModelCallEnd =
  | {
      readonly ok: true;
      readonly finishReason: string;
      /** Undefined where the provider did not say. */
      readonly usage: ModelTokens | undefined;
      /** As the provider calls them, with known secrets replaced. */
      readonly responseId?: string;
      readonly responseModel?: string;
    }
  | { readonly ok: false; readonly code: string; readonly aborted: boolean; readonly status?: number };
export interface ModelTokens {
  /** Cached ones included. */
  readonly input: number;
  /** Reasoning included. */
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

/** How a run's stay in this process ended; `stopped` is a fault of the host or the disk. */
export interface ActivityEnd {
  readonly status: "completed" | "failed" | "cancelled" | "suspended" | "stopped";
  /** Of a failure or a fault. */
  readonly code?: string;
}

/** Telemetry failed; runs go on without. Told once a session. */
export interface TelemetryFault {
  readonly by: "telemetry";
  readonly message: string;
  readonly cause: unknown;
}
