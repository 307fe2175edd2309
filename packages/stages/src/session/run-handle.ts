import {
  type LiveChunk,
  type OpenRequest,
  type RunHost,
  type RunOutcome,
  type RunTask,
  readOutcome,
  type SluiceEvent,
  type StageResult,
  type SuspendReason,
  type Usage,
} from "@sluice/core";
import type { SaidSafely } from "../secrets/encodings.ts";

/** A call that was refused. */
export interface DeniedCall {
  readonly executionId: string;
  readonly callId: string;
  readonly tool: string;
  readonly cause: string;
}
interface RunResultBase {
  readonly runId: string;
  /** Every execution of a state, in the order they ended; siblings in declared order. */
  readonly stages: readonly StageResult<unknown>[];
  readonly denied: readonly DeniedCall[];
  readonly usage: Usage;
}
/** How a run ended, or that it waits. */
export type RunResult<O> = RunResultBase &
  (
    | { readonly status: "completed"; readonly output: O }
    | { readonly status: "failed" | "cancelled"; readonly error: { readonly code: string; readonly message: string } }
    | { readonly status: "suspended"; readonly reason: SuspendReason; readonly waitingFor: readonly OpenRequest[] }
  );

/** A run that was started or resumed. Awaiting it gives its result; it rejects when it could not start or its journal failed. */
export interface RunHandle<O> extends PromiseLike<RunResult<O>> {
  readonly runId: string;
  /** Every event of the run and its children from the first on, until the run ends or is suspended. Each loop starts over. */
  readonly events: AsyncIterable<SluiceEvent>;
  /** Streamed text as it comes: never journaled, lost when nobody listens. Returns the unsubscriber. */
  onLive(listener: (chunk: LiveChunk) => void): () => void;
  /** Ends the run as cancelled and waits for it. */
  cancel(reason: string): Promise<void>;
  /** Stops the run here; it can be resumed. Writing calls get five seconds to finish. */
  suspend(): Promise<void>;
}

/** A run of a session from the moment it is asked for. */
export interface RunHere {
  readonly host: () => RunHost;
  readonly runId: string;
  readonly said: SaidSafely;
  /** Rejects when it could not start. */
  readonly started: Promise<RunTask>;
}

/** Waits for a run, and takes it from the session's tasks when it is over. */
export async function runResult<O>(
  { host, runId, started }: RunHere,
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
  return { ...nothing(runId), status: "suspended", reason: settled.suspended, waitingFor };
}

export function runHandle<O>({ host, runId, said, started }: RunHere, result: Promise<RunResult<O>>): RunHandle<O> {
  const over = new AbortController();
  const end = (): void => over.abort("over");
  // The handle may be used for its events alone; whoever awaits it still sees the rejection.
  result.then(end, end);

  return {
    runId,
    // biome-ignore lint/suspicious/noThenProperty: a handle is awaited like the result it stands for
    then: (onfulfilled, onrejected) => result.then(onfulfilled, onrejected), // oxlint-disable-line unicorn/no-thenable
    events: {
      async *[Symbol.asyncIterator]() {
        await started;
        yield* host().events(runId, { follow: true, children: true, signal: over.signal });
      },
    },
    onLive: (listener) => {
      let left = false;
      let stop: (() => void) | undefined;
      started.then(
        (task) => {
          if (!left) stop = task.onLive(listener);
        },
        () => undefined, // the result tells
      );
      return () => {
        left = true;
        stop?.();
      };
    },
    cancel: async (reason) => {
      await started;
      await host().cancel(runId, said.text(reason), "api");
      await result;
    },
    suspend: async () => {
      const task = await started;
      await task.suspend("interrupted");
    },
  };
}

function nothing(runId: string): RunResultBase {
  return { runId, stages: [], denied: [], usage: { inputTokens: 0, outputTokens: 0 } };
}

/** A run's result from what its journal says; `O` is the compiler's knowledge of what the pipeline's routes return. */
export function finished<O>(runId: string, outcome: RunOutcome): RunResult<O> {
  const { stages, denied, usage, error } = outcome;
  const base = { runId, stages, denied, usage };
  if (outcome.status !== "completed")
    return { ...base, status: outcome.status, error: error ?? { code: outcome.status, message: outcome.status } };
  const output: O = JSON.parse(JSON.stringify(outcome.output ?? null));
  return { ...base, status: "completed", output };
}
