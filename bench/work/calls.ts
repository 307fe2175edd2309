import { defineTool, done, pipeline, stage } from "@sluice/core";
import { z } from "zod";
import type { Workload, WorkloadOptions } from "../measure.ts";
import { type Answer, pieces, streamingModel } from "../model.ts";
import { COMPLETION_TOOL, PROMPT, REVIEW_ANSWER, reviewSchema, TASK } from "../review.ts";
import { benchSession, completed, scratch, shortMemory } from "../session.ts";

/** Reads nothing from anywhere: what is measured is the way to it and back. */
const lookup = defineTool({
  name: "Lookup",
  description: "Looks a word up.",
  input: z.object({ word: z.string() }),
  effect: "read",
  subjects: () => [],
  execute: async ({ word }) => ({ ok: true, output: `${word}: 7` }),
});

/** One stage whose model makes `calls` calls, one a turn, and then completes. */
export function callsInOneTranscript(calls: number): (options: WorkloadOptions) => Promise<Workload> {
  return async ({ quick }) => {
    const turns = quick ? Math.ceil(calls / 10) : calls;
    const searching = pipeline({
      id: "searching",
      input: z.object({ task: z.string() }),
      stages: {
        search: stage({
          prompt: PROMPT,
          allowedTools: ["Lookup"],
          completionTool: COMPLETION_TOOL,
          completionSchema: reviewSchema,
          turnCap: turns + 1,
        }),
      },
      initial: "search",
      next: { search: ({ output }) => done(output) },
    });
    const answerAt = (call: number): Answer => (call % (turns + 1) < turns ? lookingUp(call) : REVIEW_ANSWER);
    const session = benchSession(scratch(), { model: streamingModel(answerAt), tools: [lookup], store: shortMemory() });
    // A short transcript is walked often enough to be as warm, and as well measured, as a long one.
    const runs = Math.max(1, Math.floor((quick ? 300 : 3000) / turns));
    return {
      warmUps: quick ? 1 : 8,
      slice: async () => {
        for (let run = 0; run < runs; run += 1) completed(await session.run(searching, { task: TASK }));
        return { units: runs, facts: { calls: turns } };
      },
      close: session.close,
    };
  };
}

function lookingUp(call: number): Answer {
  return { reasoning: [], text: [], tool: "Lookup", input: pieces(JSON.stringify({ word: `word-${call}` }), 3) };
}
