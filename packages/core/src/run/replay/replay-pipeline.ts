import type { Clock } from "../../base/clock.ts";
import type { PipelineSpec } from "../../definition/spec.ts";
import { type NextRecord, type ReplayResult, replayJournals } from "../../journal/replay/replay-journals.ts";
import type { RunJournal } from "../../journal/seam.ts";
import { parseStepId } from "../../journal/step-id.ts";
import type { RunDeps } from "../deps.ts";
import { createRunMeter } from "../limits/limits.ts";
import { pipelineProgram } from "../pipeline-run.ts";
import { readOutcome } from "../run-result.ts";
import { leftIn } from "../stage/recorded-phases.ts";

/**
 * The clock of a replay. Its time is fixed, since decisions that depend on time are read from the record. Its timers are real, so
 * that a hook that hangs still hits its time limit.
 */
export function replayClock(timers: Pick<Clock, "after">, at: number): Clock {
  return { now: () => at, after: (ms, fn) => timers.after(ms, fn) };
}

/** Replays a pipeline on the journals of a run and its children, with `replayTools` and `replayClock`. Throws Host `journal_damaged`. */
export async function replayPipeline(
  spec: PipelineSpec,
  deps: RunDeps,
  journals: readonly RunJournal[],
): Promise<ReplayResult> {
  // Spending and reached caps are read from the records.
  const meter = createRunMeter(spec.limits, deps.clock);
  const program = pipelineProgram(spec, deps, meter);
  return await replayJournals({ journals, program, cancelIn });
}

/** Why the run was cancelled before it recorded a cancelled stage or its end as cancelled. */
function cancelIn(next: NextRecord): string | undefined {
  if ("status" in next) return next.status === "cancelled" ? readOutcome(next).error?.message : undefined;
  if (parseStepId(next.stepId).kind !== "leave") return undefined;
  const left = leftIn(next);
  if (left.kind !== "left" || left.result.status !== "cancelled") return undefined;
  return left.interrupted === true || left.interruption !== undefined ? undefined : left.result.reason;
}
