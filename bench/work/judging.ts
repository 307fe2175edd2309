import { realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { bashTool } from "../../packages/stages/src/tools/bash/bash-tool.ts";
import { LONG_LINES } from "../../test/fixtures/shell/long-lines.ts";
import type { Workload } from "../measure.ts";

/** Analysis of command lines of 16 KB, and of a typical one: CPU of the worst, in milliseconds. */
export async function judgedLines(): Promise<Workload> {
  const root = realpathSync(fileURLToPath(new URL("../..", import.meta.url)));
  const tool = bashTool();
  await tool.ready?.();
  const env = { PATH: process.env.PATH ?? "/usr/bin:/bin" };
  const costOf = (command: string): number => {
    const before = process.cpuUsage();
    tool.subjects({ command }, { root }, { env, mayWrite: false });
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  };
  return {
    warmUps: 1,
    slice: async () => ({
      units: LONG_LINES.size,
      facts: {
        worst: Math.max(...[...LONG_LINES.values()].map(costOf)),
        usual: costOf(
          "cd packages && git log --oneline -5 -- core | head -3; grep -rn 'export function' core/src/gate | wc -l",
        ),
      },
    }),
  };
}
