import type { Clock } from "../../base/clock.ts";
import type { PipelineSpec } from "../../definition/spec.ts";
import { type ReplayResult, replayJournals } from "../../journal/replay/replay-journals.ts";
import type { NextRecord } from "../../journal/replay/replay-runner.ts";
import type { RunJournal } from "../../journal/seam.ts";
import { parseStepId } from "../../journal/step-id.ts";
import type { RunDeps } from "../deps.ts";
import { createRunMeter } from "../limits/limits.ts";
import { pipelineProgram } from "../pipeline-run.ts";
import { leftIn } from "../stage/recorded-phases.ts";

/**
 * The clock of a replay. Its time stands still, since what time decided is in the record; its timers are real, so that code of the
 * pipeline's own which is asked again and hangs comes to the limits that it has.
 */
export function replayClock(timers: Pick<Clock, "after">, at: number): Clock {
  return { now: () => at, after: (ms, fn) => timers.after(ms, fn) };
}

/** Runs a pipeline again over the journals of a run and its siblings, with the tools of `replayTools` and the time of `replayClock`. Throws Host `journal_damaged`. */
export async function replayPipeline(
  spec: PipelineSpec,
  deps: RunDeps,
  journals: readonly RunJournal[],
): Promise<ReplayResult> {
  // What was spent is in the records, and so is what became of caps.
  const meter = createRunMeter(spec.limits, deps.clock, { tokens: 0, workedMs: 0 });
  const program = pipelineProgram(spec, deps, meter);
  return await replayJournals({ journals, program, showsCancel });
}

/** A stage that is left as cancelled, or a run that ends so, shows that the run was told to end before. */
function showsCancel(next: NextRecord): boolean {
  if ("status" in next) return next.status === "cancelled";
  if (parseStepId(next.stepId).kind !== "leave") return false;
  const left = leftIn(next);
  return left.kind === "left" && left.result.status === "cancelled";
}
