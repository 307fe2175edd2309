import type { LanguageModelV4 } from "@ai-sdk/provider";
import { defineTool, done, pipeline, stage } from "@sluice/core";
import { z } from "zod";
import { bareCalls } from "../bare.ts";
import type { Workload, WorkloadOptions } from "../measure.ts";
import { type Answer, pieces, streamingModel, wholeModel } from "../model.ts";
import { COMPLETION_TOOL, PROMPT, REVIEW_ANSWER, REVIEW_CALL, reviewSchema, TASK } from "../review.ts";
import { benchSession, completed, scratch, shortMemory } from "../session.ts";

export const lookupInput = z.object({ word: z.string() });

/** Does nothing: only the overhead of the call is measured. */
const lookup = defineTool({
  name: "Lookup",
  description: "Looks a word up.",
  input: lookupInput,
  effect: "read",
  subjects: () => [],
  execute: async ({ word }) => ({ ok: true, output: `${word}: 7` }),
});

/** The same in a loop without a gate. */
export async function bareCallsInOneTranscript({ quick }: WorkloadOptions): Promise<Workload> {
  const turns = quick ? 20 : 200;
  const runs = quick ? 15 : 150;
  const answerAt = (call: number): Answer => (call % (turns + 1) < turns ? lookingUp(call) : REVIEW_ANSWER);
  const model = streamingModel(answerAt);
  const tool = async (input: unknown): Promise<string> => `${lookupInput.parse(input).word}: 7`;
  return {
    warmUps: quick ? 1 : 8,
    slice: async () => {
      for (let run = 0; run < runs; run += 1) await bareCalls(model, turns, tool);
      return { units: runs, facts: { calls: turns } };
    },
  };
}

/** One stage whose model makes `calls` calls, one per turn, and then completes. */
export function callsInOneTranscript(calls: number): (options: WorkloadOptions) => Promise<Workload> {
  return searches(calls, (turns) =>
    streamingModel((call) => (call % (turns + 1) < turns ? lookingUp(call) : REVIEW_ANSWER)),
  );
}

/** The same with a model that answers in three parts. */
export function wholeCallsInOneTranscript(calls: number): (options: WorkloadOptions) => Promise<Workload> {
  return searches(calls, lookupModel);
}

function searches(
  calls: number,
  modelOf: (turns: number) => LanguageModelV4,
): (options: WorkloadOptions) => Promise<Workload> {
  return async ({ quick }) => {
    const { turns, runs } = lookupRuns(calls, quick);
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
    const session = benchSession(scratch(), { model: modelOf(turns), tools: [lookup], host: shortMemory() });
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

/** The turns of a transcript, and how often a slice repeats it: short ones are as warm, and measured as well, as long ones. */
export function lookupRuns(calls: number, quick: boolean): { readonly turns: number; readonly runs: number } {
  const turns = quick ? Math.ceil(calls / 10) : calls;
  return { turns, runs: Math.max(1, Math.floor((quick ? 300 : 3000) / turns)) };
}

/** A model that makes `turns` calls, one per turn, and then completes; each answer has three parts. */
export function lookupModel(turns: number): LanguageModelV4 {
  return wholeModel((call) =>
    call % (turns + 1) < turns ? { tool: "Lookup", input: JSON.stringify({ word: `word-${call}` }) } : REVIEW_CALL,
  );
}

/** Reasoning of forty tokens, a sentence of twenty and a call of ten, two tokens per piece. */
function lookingUp(call: number): Answer {
  const input = JSON.stringify({ word: `word-${call}` });
  return { reasoning: THOUGHT, text: SENTENCE, tool: "Lookup", input: pieces(input, 5) };
}

const THOUGHT = pieces(
  "Each word so far gave the same number, which may be chance or a rule. One that differs would settle it; if none does, I have to say that I found nothing else. The next one is as good as any.",
  20,
);
const SENTENCE = pieces(
  "The word before this one settled nothing, so I look the next one up as well before I answer.",
  10,
);
