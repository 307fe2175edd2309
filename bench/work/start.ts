import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import type { Workload, WorkloadOptions } from "../measure.ts";
import { scratch } from "../session.ts";

const command = fileURLToPath(new URL("../../packages/cli/bin/sluice.js", import.meta.url));
const spy = fileURLToPath(new URL("start-spy.ts", import.meta.url));
/** The report of a process when it ends. */
const report = z.object({ cpuMs: z.number(), packages: z.array(z.string()) });

/** The CPU time of a process and the packages it loaded. */
function started(args: readonly string[], cwd: string): z.infer<typeof report> {
  const { status, stderr, output } = spawnSync(process.execPath, ["--import", spy, ...args], {
    cwd,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe", "pipe"],
    env: { PATH: process.env.PATH, HOME: cwd, NO_COLOR: "1" },
  });
  if (status !== 0) throw new Error(`node ${args.join(" ")} ended with ${status}: ${stderr}`);
  return report.parse(JSON.parse(output[3] ?? ""));
}

/** `sluice --version` compared with a Node that does nothing. */
export async function versionStart({ quick }: WorkloadOptions): Promise<Workload> {
  const cwd = scratch();
  return {
    warmUps: quick ? 1 : 2,
    slice: async () => {
      const bare = started(["-e", "0"], cwd);
      const version = started([command, "--version"], cwd);
      return { units: 1, facts: { extraMs: version.cpuMs - bare.cpuMs, packages: version.packages.length } };
    },
  };
}

/** The demo, a headless run with the scripted model: the packages that it loads but does not use. */
export async function headlessStart(_options: WorkloadOptions): Promise<Workload> {
  const cwd = scratch();
  return {
    warmUps: 0,
    slice: async () => {
      const bare = started(["-e", "0"], cwd);
      const help = started([command, "run", "--help"], cwd);
      const demo = started([command, "demo", "--output-format", "json"], cwd);
      const unused = demo.packages.filter((name) => /^(?:ink|react|ai|@ai-sdk\/(?!provider$).*)$/.test(name));
      return {
        units: 1,
        facts: { demoMs: demo.cpuMs - bare.cpuMs, unused: unused.length, helpPackages: help.packages.length },
      };
    },
  };
}
