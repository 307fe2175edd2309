import type { StateExecutor } from "@sluice/core";
import { humanExecutor } from "./human.ts";
import { pollExecutor } from "./poll.ts";
import type { CommandWorld } from "./run-command.ts";
import { scriptExecutor } from "./script.ts";
import { stepsExecutor } from "./steps.ts";
import { subPipelineExecutor } from "./sub-pipeline.ts";
import { timerExecutor } from "./timer.ts";

/** The executors of all kinds without a model, which every session and replay has. */
export function kindExecutors(world: CommandWorld): readonly StateExecutor[] {
  return [stepsExecutor, scriptExecutor(world), pollExecutor(world), timerExecutor, humanExecutor, subPipelineExecutor];
}
