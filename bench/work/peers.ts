import type { LanguageModelV4 } from "@ai-sdk/provider";
import { generateText, stepCountIs, streamText, type ToolSet } from "ai";
import type { z } from "zod";
import type { Workload, WorkloadOptions } from "../measure.ts";
import { COMPLETION_TOOL, PROMPT, reviewSchema, TASK } from "../review.ts";
import { lookupInput, lookupModel, lookupRuns } from "./calls.ts";
import { wholeReviewModel } from "./stages.ts";

// The same work with the AI SDK, the way its users write it: a loop over calls whose completion tool has no `execute`, so that
// its call ends the text. Telemetry is off, and the same model object answers.

// `tool()` returns what it is given; its type does not suit exact optional members.
const completing: ToolSet = {
  [COMPLETION_TOOL]: { description: "Ends this stage with its result.", inputSchema: reviewSchema },
};
const lookingUp: ToolSet = {
  ...completing,
  Lookup: {
    description: "Looks a word up.",
    inputSchema: lookupInput,
    execute: async ({ word }: z.infer<typeof lookupInput>) => `${word}: 7`,
  },
};

function request(model: LanguageModelV4, tools: ToolSet) {
  return { model, instructions: PROMPT, prompt: TASK, tools, telemetry: { isEnabled: false } };
}

/** The checked result of a stage, which its audit keeps to the end. */
function resultOf(
  calls: readonly { readonly toolName: string; readonly invalid?: boolean | undefined; readonly input: unknown }[],
) {
  const call = calls.find(({ toolName }) => toolName === COMPLETION_TOOL);
  if (call === undefined || call.invalid === true) throw new Error("the model did not complete");
  return { at: Date.now(), output: call.input };
}

export const generatedTexts = (options: WorkloadOptions): Promise<Workload> =>
  texts(options, async (model) => resultOf((await generateText(request(model, completing))).toolCalls));

export const streamedTexts = (options: WorkloadOptions): Promise<Workload> =>
  texts(options, async (model) => {
    const fail = ({ error }: { readonly error: unknown }): void => {
      throw error;
    };
    const stream = streamText({ ...request(model, completing), onError: fail });
    await stream.consumeStream();
    return resultOf(await stream.toolCalls);
  });

/** A loop of stages, each with a fresh transcript. */
async function texts(
  { quick }: WorkloadOptions,
  stage: (model: LanguageModelV4) => Promise<object>,
): Promise<Workload> {
  globalThis.AI_SDK_LOG_WARNINGS = false;
  const model = wholeReviewModel();
  const units = quick ? 50 : 500;
  return {
    warmUps: quick ? 1 : 20,
    slice: async () => {
      const audit: object[] = [];
      for (let done = 0; done < units; done += 1) audit.push(await stage(model));
      return { units: audit.length, facts: {} };
    },
  };
}

/** One transcript of `calls` calls of a tool, one per turn, and a completion. */
export function generatedCalls(calls: number): (options: WorkloadOptions) => Promise<Workload> {
  return async ({ quick }) => {
    globalThis.AI_SDK_LOG_WARNINGS = false;
    const { turns, runs } = lookupRuns(calls, quick);
    const model = lookupModel(turns);
    return {
      warmUps: quick ? 0 : 1,
      slice: async () => {
        for (let run = 0; run < runs; run += 1) {
          const { toolCalls } = await generateText({ ...request(model, lookingUp), stopWhen: stepCountIs(turns + 1) });
          resultOf(toolCalls);
        }
        return { units: runs, facts: { calls: turns } };
      },
    };
  };
}
