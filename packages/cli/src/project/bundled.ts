// What the command has beside a project's own code. It is loaded when it is needed.

import type { AnyPipeline, StateExecutor } from "@sluice/core";
import { bundledPipelines } from "@sluice/stages/runtime";

/** Loaders of the pipelines that come with the command, by name. */
export function bundled(): ReadonlyMap<string, () => Promise<AnyPipeline>> {
  return new Map([...bundledPipelines(), ["auto", async () => (await import("@sluice/workflows")).auto]]);
}

/** The executors of the kinds of states that workflow files add to those of every session. */
export const bundledExecutors: readonly StateExecutor[] = [
  {
    kind: "authored",
    act: async (init, scope) => {
      const { authoredExecutor } = await import("@sluice/workflows");
      return await authoredExecutor.act(init, scope);
    },
  },
];
