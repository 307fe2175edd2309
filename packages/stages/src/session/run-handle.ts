import type {
  ExecutionFault,
  LiveChunk,
  OpenRequest,
  RunHost,
  RunTask,
  SluiceEvent,
  StageResult,
  SuspendReason,
  Usage,
} from "@sluice/core";
import { type Acknowledgement, type RunError, type RunOutcome, readOutcome } from "@sluice/core/runtime";
import { interruptRun } from "./interrupt.ts";

export interface DeniedCall {
  readonly executionId: string;
  readonly callId: string;
  readonly tool: string;
  readonly cause: string;
}
interface RunResultBase {
  readonly runId: string;
  /** Every execution of a state, in the order in which they ended; siblings in declared order. */
  readonly stages: readonly StageResult<unknown>[];
  readonly denied: readonly DeniedCall[];
  readonly usage: Usage;
  /** The final state that ended the run, if one did. */
  readonly state?: string;
  /** Of an orchestrated run: what its orchestrator said at the end, and the input of the run that it asks for. */
  readonly acknowledgement?: Acknowledgement;
}
/** Why a run is suspended, with the first fault of a provider, and all of them. */
export interface Suspension {
  readonly reason: SuspendReason;
  readonly code?: string;
  readonly message?: string;
  /** The earliest time at which a fault may have ended, in epoch milliseconds, where one is known. */
  readonly retryAt?: number;
  readonly faults?: readonly ExecutionFault[];
}

/** How a run ended or why it is suspended. */
export type RunResult<O> = RunResultBase &
  (
    | { readonly status: "completed"; readonly output: O }
    | { readonly status: "failed" | "cancelled"; readonly error: RunError }
    | {
        readonly status: "suspended";
        readonly reason: SuspendReason;
        readonly waitingFor: readonly OpenRequest[];
        /** When a run that sleeps continues, in epoch milliseconds. */
        readonly wakeAt?: number;
        readonly suspended: Suspension;
      }
  );

/** A run that was started or resumed. Awaiting it gives its result; it rejects if the run could not start or its journal failed. */
export interface RunHandle<O> extends PromiseLike<RunResult<O>> {
  readonly runId: string;
  /** All events of the run and its children until it ends or is suspended. Each loop starts with the first event. */
  readonly events: AsyncIterable<SluiceEvent>;
  /** Streamed text, which is not journaled. Returns a function that removes the listener. */
  onLive(listener: (chunk: LiveChunk) => void): () => void;
  /** Cancels the run and waits until it has ended. */
  cancel(reason: string): Promise<void>;
  /**
   * Interrupts what the run does now and waits until it has ended, with what it had done recorded, and the run is suspended. When the
   * run is resumed, the interrupted states are entered again and read in `ctx.feedback` what they had done. If nothing can be
   * interrupted, the run is only suspended.
   */
  interrupt(reason?: string): Promise<void>;
  /** Suspends the run, which can be resumed in the middle of what it does. Writing calls get five seconds to finish. */
  suspend(): Promise<void>;
}

/** A run of a session that is starting or active. */
export interface LocalRun {
  readonly host: () => RunHost;
  readonly runId: string;
  /** Masks known secrets. */
  readonly clean: (text: string) => string;
  /** Rejects if the run cannot start. */
  readonly started: Promise<RunTask>;
}

/** Waits for a run and removes it from the session's tasks. */
export async function runResult<O>(
  { host, runId, started }: LocalRun,
  tasks: Map<string, RunTask>,
): Promise<RunResult<O>> {
  const task = await started;
  let settled: Awaited<RunTask["settled"]>;
  try {
    settled = await task.settled;
  } finally {
    tasks.delete(runId);
  }
  if ("end" in settled) return finished(runId, readOutcome(settled.end));
  const waitingFor = await host().requests(runId);
  const nothing = { stages: [], denied: [], usage: { inputTokens: 0, outputTokens: 0 } };
  const { suspended: reason, wakeAt, faults } = settled;
  const wake = wakeAt === undefined ? {} : { wakeAt };
  const suspended = suspensionOf(reason, faults);
  return { runId, ...nothing, status: "suspended", reason, waitingFor, ...wake, suspended };
}

/** What a suspended run says of its faults. */
function suspensionOf(reason: SuspendReason, faults: readonly ExecutionFault[] = []): Suspension {
  const [first] = faults;
  if (first === undefined) return { reason };
  const times = faults.flatMap(({ retryAt }) => retryAt ?? []);
  const retry = times.length === 0 ? {} : { retryAt: Math.min(...times) };
  return { reason, code: first.code, message: first.message, ...retry, faults };
}

export function runHandle<O>({ host, runId, clean, started }: LocalRun, result: Promise<RunResult<O>>): RunHandle<O> {
  const ended = new AbortController();
  const end = (): void => ended.abort("over");
  // Handles the rejection for callers that use the events only; awaiting the handle still rejects.
  result.then(end, end);

  return {
    runId,
    // biome-ignore lint/suspicious/noThenProperty: a handle is awaited like the result it stands for
    then: (onfulfilled, onrejected) => result.then(onfulfilled, onrejected), // oxlint-disable-line unicorn/no-thenable
    events: {
      async *[Symbol.asyncIterator]() {
        await started;
        yield* host().events(runId, { follow: true, children: true, signal: ended.signal });
      },
    },
    onLive: (listener) => {
      let removed = false;
      let stop: (() => void) | undefined;
      started.then(
        (task) => {
          if (!removed) stop = task.onLive(listener);
        },
        () => undefined, // the result rejects too
      );
      return () => {
        removed = true;
        stop?.();
      };
    },
    cancel: async (reason) => {
      await started;
      await host().cancel(runId, clean(reason), "api");
      await result;
    },
    interrupt: async (reason = "") => {
      await started;
      await interruptRun(host(), runId, clean(reason), "api");
      await result;
    },
    suspend: async () => {
      const task = await started;
      await task.suspend("interrupted");
    },
  };
}

/** The result of a finished run, from its journal. `O` is the output type of the pipeline's routes. */
export function finished<O>(runId: string, outcome: RunOutcome): RunResult<O> {
  const { stages, denied, usage, error, state, acknowledgement } = outcome;
  const said = acknowledgement === undefined ? {} : { acknowledgement };
  const base = { runId, stages, denied, usage, ...(state === undefined ? {} : { state }), ...said };
  if (outcome.status !== "completed")
    return { ...base, status: outcome.status, error: error ?? { code: outcome.status, message: outcome.status } };
  const output: O = JSON.parse(JSON.stringify(outcome.output ?? null));
  return { ...base, status: "completed", output };
}
