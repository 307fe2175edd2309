import { layOut, openPipelineWorld } from "./pipeline-world.ts";
import { openStepsWorld } from "./steps-world.ts";
import type { OpenedWorld, WorldOptions } from "./world.ts";

interface World {
  /** Makes what a run finds in its workspace. */
  readonly layOut: (workspace: string) => void;
  readonly open: (options: WorldOptions) => OpenedWorld;
}

/** `pipeline`: a session with stages, tools, people and siblings. `steps`: a program against the seam, with forks in forks. */
export const WORLDS = {
  pipeline: { layOut, open: openPipelineWorld },
  steps: { layOut: () => undefined, open: openStepsWorld },
} as const satisfies Record<string, World>;

export type WorldName = keyof typeof WORLDS;
