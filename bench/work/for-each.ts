import { done, forEach, pipeline, stage } from "@sluice/core";
import { z } from "zod";
import type { Workload, WorkloadOptions } from "../measure.ts";
import { COMPLETION_TOOL, PROMPT, reviewSchema, TASK } from "../review.ts";
import { benchSession, completed, scratch, shortMemory } from "../session.ts";
import { reviewStage, wholeReviewModel } from "./stages.ts";

const item = z.object({ file: z.string() });

/** Runs that review a list of that many files, between two stages. */
export function listsOf(length: number): (options: WorkloadOptions) => Promise<Workload> {
  return async ({ quick }) => {
    const size = quick ? Math.ceil(length / 10) : length;
    const files = Array.from({ length: size }, (_, at) => ({ file: `src/part-${at}.ts` }));
    const listing = pipeline({
      id: "listing",
      input: z.object({ task: z.string() }),
      stages: {
        split: reviewStage(),
        review: stage({
          prompt: PROMPT,
          inputSchema: item,
          allowedTools: ["Read", "Grep", "Glob"],
          completionTool: COMPLETION_TOOL,
          completionSchema: reviewSchema,
          turnCap: 8,
        }),
        join: reviewStage(),
      },
      initial: "split",
      next: {
        split: () => forEach("review", files, { key: ({ file }) => file, join: "join" }),
        join: ({ output }) => done(output),
      },
    });
    const session = benchSession(scratch(), { model: wholeReviewModel(), maxParallel: 8, host: shortMemory() });
    // Short runs are as warm, and measured as well, as long ones.
    const runs = Math.max(1, Math.floor((quick ? 30 : 1500) / Math.max(1, size)));
    return {
      warmUps: quick ? 1 : 20,
      slice: async () => {
        for (let run = 0; run < runs; run += 1) completed(await session.run(listing, { task: TASK }));
        return { units: runs, facts: { items: size } };
      },
      close: session.close,
    };
  };
}
