import { join } from "node:path";
import { type Desk, desk } from "./command.ts";

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

export function sleepingDesk(config = NAPS): Desk {
  const here = desk();
  here.write("sluice.config.js", config);
  here.write("package.json", '{ "type": "module" }');
  return here;
}
