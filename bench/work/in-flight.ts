import { done, pipeline, to } from "@sluice/core";
import { z } from "zod";
import type { Workload, WorkloadOptions } from "../measure.ts";
import { streamingModel } from "../model.ts";
import { REVIEW_ANSWER, TASK } from "../review.ts";
import { benchSession, completed, scratch } from "../session.ts";
import { liveHeap } from "./heap.ts";
import { reviewStage } from "./stages.ts";

/** Runs that wait for a model at the same time, in the second of three stages: the heap of each. */
export async function heapOfRunsInFlight({ quick }: WorkloadOptions): Promise<Workload> {
  const runs = quick ? 50 : 1000;
  const three = pipeline({
    id: "three",
    input: z.object({ task: z.string() }),
    stages: { plan: reviewStage(), execute: reviewStage(), review: reviewStage() },
    initial: "plan",
    next: { plan: () => to("execute"), execute: () => to("review"), review: ({ output }) => done(output) },
  });
  return {
    warmUps: 1,
    slice: async () => {
      let waiting = 0;
      let open: () => void = () => undefined;
      const gate = new Promise<void>((resolve) => {
        open = resolve;
      });
      let answered = 0;
      const model = streamingModel(
        () => REVIEW_ANSWER,
        async () => {
          answered += 1;
          if (answered <= runs || answered > 2 * runs) return;
          waiting += 1;
          await gate;
        },
      );
      const session = benchSession(scratch(), { model, maxParallel: runs });
      const before = liveHeap();
      const all = Array.from({ length: runs }, () => session.run(three, { task: TASK }));
      while (waiting < runs) await new Promise((resolve) => setImmediate(resolve));
      const bytesHeld = liveHeap() - before;
      open();
      for (const run of all) completed(await run);
      await session.close();
      return { units: runs, facts: { bytesHeld } };
    },
  };
}
