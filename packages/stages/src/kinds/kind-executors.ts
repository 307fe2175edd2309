import type { StateExecutor } from "@sluice/core";
import { humanExecutor } from "./human.ts";
import { stepsExecutor } from "./steps.ts";
import { subPipelineExecutor } from "./sub-pipeline.ts";
import { timerExecutor } from "./timer.ts";

/** The executors of all kinds without a model, which every session and replay has. */
export const KIND_EXECUTORS: readonly StateExecutor[] = [
  stepsExecutor,
  timerExecutor,
  humanExecutor,
  subPipelineExecutor,
];
