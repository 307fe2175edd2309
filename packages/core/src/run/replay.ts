import type { Clock } from "../base/clock.ts";
import type { PipelineSpec } from "../definition/spec.ts";
import { type Replayed, replayJournals } from "../journal/replay.ts";
import type { NextOnTape } from "../journal/replay-runner.ts";
import type { RunJournal } from "../journal/seam.ts";
import type { RunDeps } from "./deps.ts";
import type { Left } from "./leave.ts";
import { createRunMeter } from "./limits.ts";
import { pipelineProgram } from "./program.ts";

/** The time of the record that is replayed. Its timers are real: nothing but code of the pipeline's own is waited for. */
export interface ReplayClock extends Clock {
  set(at: number): void;
}

export function replayClock(timers: Pick<Clock, "after">): ReplayClock {
  let now = 0;
  return {
    now: () => now,
    after: (ms, fn) => timers.after(ms, fn),
    set: (at) => {
      now = at;
    },
  };
}

/** What a replay has of a session: its clock shows recorded times, and its tools are those of `replayTools`. */
export type ReplayDeps = Omit<RunDeps, "clock"> & { readonly clock: ReplayClock };

/** Runs a pipeline again over the journals of a run and its siblings. Throws Host `journal_damaged`. */
export async function replayPipeline(
  spec: PipelineSpec,
  deps: ReplayDeps,
  journals: readonly RunJournal[],
): Promise<Replayed> {
  // What was spent is in the records, and so is what became of caps.
  const meter = createRunMeter(spec.limits, deps.clock, { tokens: 0, workedMs: 0 });
  const program = pipelineProgram(spec, deps, meter);
  return await replayJournals({ journals, program, showsCancel, onTime: deps.clock.set });
}

/** A stage that is left as cancelled, or a run that ends so, shows that the run was told to end before. */
function showsCancel(next: NextOnTape): boolean {
  if ("status" in next) return next.status === "cancelled";
  if (!next.stepId.endsWith("/leave")) return false;
  const left: Left = JSON.parse(next.outcome.value);
  return left.kind === "left" && left.result.status === "cancelled";
}
