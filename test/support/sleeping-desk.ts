import { join } from "node:path";
import { vi } from "vitest";
import { type Desk, desk } from "./command.ts";
import { type DeskHere, sluiceHere } from "./command-here.ts";
import { lookAt } from "./look-at.ts";

/** The path of pipelines that sleep; a desk of `sleepingDesk` knows their kind of state. */
export const SLEEPING = join(import.meta.dirname, "../fixtures/command/sleeping.ts");

/** A config with the kind of state `nap`: it sleeps `times` times for `ms` each, and returns the times at which it woke. */
export const NAPS = `
const nap = {
  kind: "nap",
  act: async (input, scope) => {
    const { ms, times = 1 } = scope.ctx.run.input;
    const woke = [];
    let from = await scope.steps.now("from");
    for (let n = 1; n <= times; n += 1) {
      await scope.sleep("sleep/" + n, from + ms);
      from = await scope.steps.now("woke/" + n);
      woke.push(from);
    }
    return { status: "completed", output: woke, turns: 0, usage: { inputTokens: 0, outputTokens: 0 } };
  },
};
export default { executors: [nap] };
`;

/**
 * A desk whose commands run in this process; what it starts is a process of its own. A run that loads the config does not change
 * between the two: the test runner rewrites the code that it loads.
 */
export interface SleepingDesk extends DeskHere, Pick<Desk, "start"> {}

export function sleepingDesk(config = NAPS): SleepingDesk {
  const started = desk();
  const here = { ...started, sluice: sluiceHere(started.folder) };
  here.write("sluice.config.js", config);
  here.write("package.json", '{ "type": "module" }');
  return here;
}

/** Waits until so many runs of a store are due. */
export async function untilDue(store: string, count = 1): Promise<void> {
  await vi.waitFor(
    async () => {
      const { runs } = await lookAt(store, (host) => host.due(count));
      if (runs.length < count) throw new Error(`${runs.length} runs are due, not ${count}`);
    },
    { timeout: 60_000, interval: 50 },
  );
}
