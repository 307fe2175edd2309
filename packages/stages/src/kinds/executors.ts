import type { StateExecutor } from "@sluice/core";
import type { CommandWorld } from "./commands/run-command.ts";
import { humanExecutor } from "./human.ts";
import { pollExecutor } from "./poll.ts";
import { scriptExecutor } from "./script.ts";
import { stepsExecutor } from "./steps.ts";
import { subPipelineExecutor } from "./sub-pipeline.ts";
import { timerExecutor } from "./timer.ts";

/** The executors of all kinds without a model, which every session and replay has. */
export function kindExecutors(world: CommandWorld): readonly StateExecutor[] {
  return [stepsExecutor, scriptExecutor(world), pollExecutor(world), timerExecutor, humanExecutor, subPipelineExecutor];
}
