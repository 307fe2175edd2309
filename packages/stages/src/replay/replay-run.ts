import type { Pipeline, RunJournal } from "@sluice/core";
import type { ReplayRunOptions, RunReplay } from "./evaluate-run.ts";

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
