import { done, pipeline, to } from "@sluice/core";
import { z } from "zod";
import type { Workload, WorkloadOptions } from "../measure.ts";
import { TASK } from "../review.ts";
import { benchSession, completed, scratch } from "../session.ts";
import { reviewModel, reviewStage } from "./stages.ts";

/** Many short runs in one session: the heap that each retains. */
export async function heapOfFinishedRuns({ quick }: WorkloadOptions): Promise<Workload> {
  const runs = quick ? 100 : 500;
  const session = benchSession(scratch(), { model: reviewModel() });
  const two = pipeline({
    id: "two",
    input: z.object({ task: z.string() }),
    stages: { plan: reviewStage(), review: reviewStage() },
    initial: "plan",
    next: { plan: () => to("review"), review: ({ output }) => done(output) },
  });
  const someRuns = async (): Promise<void> => {
    for (let run = 0; run < runs; run += 1) completed(await session.run(two, { task: TASK }));
  };
  return {
    warmUps: 1,
    slice: async () => {
      const before = liveHeap();
      await someRuns();
      await someRuns();
      return { units: 2 * runs, facts: { bytesLeft: liveHeap() - before } };
    },
    close: session.close,
  };
}

export function liveHeap(): number {
  globalThis.gc?.();
  globalThis.gc?.();
  return process.memoryUsage().heapUsed;
}
