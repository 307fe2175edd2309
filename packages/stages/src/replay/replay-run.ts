import type { Pipeline, RunJournal } from "@sluice/core";
import type { RecordDifference } from "@sluice/core/runtime";
import type { PipelineSource } from "../history/run-started.ts";
import type { SessionOptions } from "../session/options.ts";
import type { RecordLocation } from "./locate.ts";

/** The session options that affect decisions. Mode, allowlist and workspace are taken from the record. */
export interface ReplayRunOptions
  extends Pick<SessionOptions, "tools" | "executors" | "onCall" | "env" | "secrets" | "passEnv" | "prices" | "clock"> {
  /** Where the pipeline was loaded from, to report changed files too. */
  readonly source?: PipelineSource;
}

/** The first difference between a replay and the record. */
export interface RunDivergence extends RecordLocation, RecordDifference {
  /** The usual cause. */
  readonly means: string;
  /** The location, the recorded and the current value, and the usual cause, as lines of text. */
  readonly message: string;
}

/** The result of a replay. */
export interface RunReplay {
  readonly runId: string;
  readonly pipeline: string;
  /** Whether every re-evaluated decision is as recorded, as far as the record goes. */
  readonly identical: boolean;
  /** How the recorded run ended. Unfinished and cancelled runs are replayed as far as their record goes. */
  readonly status: "completed" | "failed" | "cancelled" | "unfinished";
  readonly records: number;
  /** Re-evaluated steps, and steps taken from the record. */
  readonly decided: number;
  readonly taken: number;
  /** Readable changes of the pipeline since the run was started; they may have had no effect. */
  readonly changes: readonly string[];
  readonly divergence?: RunDivergence;
}

/**
 * Runs a pipeline over a recorded run: the current prompts, gate, hooks, schemas, asserts and routes with the recorded model
 * replies, tool results, answers and clock. Nothing is called, opened or written. `recorded` is the result of
 * `host.journal(runId)`. Throws Host `journal_damaged` and `journal_version`, Validation `pipeline_mismatch` for a run of
 * another pipeline, and `session_invalid` if a kind of state has no executor.
 */
export async function replayRun<I, O>(
  pipeline: Pipeline<I, O>,
  recorded: readonly RunJournal[],
  options: ReplayRunOptions = {},
): Promise<RunReplay> {
  const { evaluateRun } = await import("./evaluate-run.ts");
  return await evaluateRun(pipeline, recorded, options);
}
