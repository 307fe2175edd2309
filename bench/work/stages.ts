import type { LanguageModelV4 } from "@ai-sdk/provider";
import { done, pipeline, type StageContext, stage, to } from "@sluice/core";
import type { SessionOptions } from "@sluice/stages";
import { openTelemetry } from "@sluice/stages/opentelemetry";
import { z } from "zod";
import { bareLoop } from "../bare.ts";
import type { Workload, WorkloadOptions } from "../measure.ts";
import { streamingModel, wholeModel } from "../model.ts";
import { COMPLETION_TOOL, PROMPT, REVIEW_ANSWER, REVIEW_CALL, reviewSchema, TASK } from "../review.ts";
import { benchSession, completed, scratch, shortMemory } from "../session.ts";

export function reviewStage(prompt: string | ((ctx: StageContext) => string) = PROMPT) {
  return stage({
    prompt,
    allowedTools: ["Read", "Grep", "Glob"],
    completionTool: COMPLETION_TOOL,
    completionSchema: reviewSchema,
    turnCap: 8,
    precondition: () => "proceed",
  });
}

/** A run that executes one stage `stages` times. */
export function loopOf(stages: number) {
  return pipeline({
    id: "loop",
    input: z.object({ task: z.string() }),
    stages: { review: reviewStage() },
    initial: "review",
    limits: { maxVisits: stages, maxHops: stages },
    next: { review: ({ output }, ctx) => (ctx.visit < stages ? to("review") : done(output)) },
  });
}

export const reviewModel = () => streamingModel(() => REVIEW_ANSWER);
export const wholeReviewModel = () => wholeModel(() => REVIEW_CALL);

export async function bare({ quick }: WorkloadOptions): Promise<Workload> {
  const model = reviewModel();
  const units = quick ? 500 : 3000;
  return {
    warmUps: quick ? 1 : 10,
    slice: async () => {
      await bareLoop(model, units);
      return { units, facts: {} };
    },
  };
}

export const memoryStages = (options: WorkloadOptions): Promise<Workload> => stagesWith(options, {});

/** With spans that are not collected: no SDK is registered. */
export const tracedStages = (options: WorkloadOptions): Promise<Workload> =>
  stagesWith(options, { telemetry: openTelemetry() });

/** With a model that answers in three parts. */
export const wholeStages = (options: WorkloadOptions): Promise<Workload> =>
  stagesWith(options, { model: wholeReviewModel() });

async function stagesWith(
  { quick }: WorkloadOptions,
  options: Pick<SessionOptions, "telemetry" | "model">,
): Promise<Workload> {
  const units = quick ? 200 : 1000;
  const looped = loopOf(units);
  const session = benchSession(scratch(), { model: reviewModel(), host: shortMemory(), ...options });
  return {
    warmUps: quick ? 1 : 20,
    slice: async () => {
      completed(await session.run(looped, { task: TASK }));
      return { units, facts: {} };
    },
    close: session.close,
  };
}

export const memoryPipelines = (options: WorkloadOptions): Promise<Workload> => pipelinesWith(options, reviewModel());

/** With a model that answers in three parts. */
export const wholePipelines = (options: WorkloadOptions): Promise<Workload> =>
  pipelinesWith(options, wholeReviewModel());

async function pipelinesWith({ quick }: WorkloadOptions, model: LanguageModelV4): Promise<Workload> {
  const runs = quick ? 70 : 350;
  const session = benchSession(scratch(), { model });
  const three = pipeline({
    id: "three",
    input: z.object({ task: z.string() }),
    stages: { plan: reviewStage(), execute: reviewStage(), review: reviewStage() },
    initial: "plan",
    next: { plan: () => to("execute"), execute: () => to("review"), review: ({ output }) => done(output) },
  });
  return {
    // What starts and ends a run is executed once in three stages, and compiled as late.
    warmUps: quick ? 1 : 120,
    slice: async () => {
      for (let run = 0; run < runs; run += 1) completed(await session.run(three, { task: TASK }));
      return { units: runs * 3, facts: {} };
    },
    close: session.close,
  };
}
