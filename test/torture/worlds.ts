import type { Json } from "@sluice/core";
import { layOut, openPipelineWorld, PIPELINE_OUTPUT } from "./pipeline-world.ts";
import { openStepsWorld, STEPS_OUTPUT } from "./steps-world.ts";
import type { OpenedWorld, WorldOptions } from "./world.ts";

interface World {
  /** Makes what a run finds in its workspace. */
  readonly layOut: (workspace: string) => void;
  /** What a run comes to. */
  readonly output: Json;
  readonly open: (options: WorldOptions) => OpenedWorld;
}

/** `pipeline`: a session with stages, tools, people and siblings. `steps`: a program against the seam, with forks in forks. */
export const WORLDS = {
  pipeline: { layOut, output: PIPELINE_OUTPUT, open: openPipelineWorld },
  steps: { layOut: () => undefined, output: STEPS_OUTPUT, open: openStepsWorld },
} as const satisfies Record<string, World>;

export type WorldName = keyof typeof WORLDS;
