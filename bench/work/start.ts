import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import type { Workload, WorkloadOptions } from "../measure.ts";
import { scratch } from "../session.ts";

const command = fileURLToPath(new URL("../../packages/cli/bin/sluice.js", import.meta.url));
const spy = fileURLToPath(new URL("start-spy.ts", import.meta.url));
const clock = fileURLToPath(new URL("../programs/report-cpu.mjs", import.meta.url));
const program = (name: string): string => fileURLToPath(new URL(`../programs/${name}.mjs`, import.meta.url));
/** The report of a process about what it loaded. */
const report = z.object({ files: z.number(), packages: z.array(z.string()) });

/** Runs a process with a module that reports on descriptor 3 when the process ends. */
function reported(spyFile: string, args: readonly string[], cwd: string): unknown {
  const { status, stderr, output } = spawnSync(process.execPath, ["--import", spyFile, ...args], {
    cwd,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe", "pipe"],
    env: { PATH: process.env.PATH, HOME: cwd, NO_COLOR: "1" },
  });
  if (status !== 0) throw new Error(`node ${args.join(" ")} ended with ${status}: ${stderr}`);
  return JSON.parse(output[3] ?? "");
}

/** The CPU time of a process in milliseconds, without a hook that would slow down what it loads. */
const cpuOf = (args: readonly string[], cwd: string): number => z.number().parse(reported(clock, args, cwd));
const loadedBy = (args: readonly string[], cwd: string) => report.parse(reported(spy, args, cwd));

/** `sluice --version` and `--help` compared with a Node that does nothing. */
export async function versionStart({ quick }: WorkloadOptions): Promise<Workload> {
  const cwd = scratch();
  const { packages } = loadedBy([command, "--version"], cwd);
  return {
    warmUps: quick ? 1 : 2,
    slice: async () => {
      const bare = cpuOf(["-e", "0"], cwd);
      const extraMs = cpuOf([command, "--version"], cwd) - bare;
      const helpMs = cpuOf([command, "--help"], cwd) - bare;
      return { units: 1, facts: { extraMs, helpMs, packages: packages.length } };
    },
  };
}

/** The demo, a headless run with the scripted model: the packages that it loads but does not use. */
export async function headlessStart(_options: WorkloadOptions): Promise<Workload> {
  const cwd = scratch();
  const demo = [command, "demo", "--output-format", "json"];
  const { packages } = loadedBy(demo, cwd);
  const unused = packages.filter((name) => /^(?:ink|react|zod|ajv|ai|@ai-sdk\/(?!provider$).*)$/.test(name)).length;
  const helpPackages = loadedBy([command, "run", "--help"], cwd).packages.length;
  return {
    warmUps: 0,
    slice: async () => {
      const bare = cpuOf(["-e", "0"], cwd);
      return { units: 1, facts: { demoMs: cpuOf(demo, cwd) - bare, unused, helpPackages } };
    },
  };
}

/** From the start of a process to its end after three stages: a bare loop, a pipeline, and the AI SDK. */
export async function firstRuns({ quick }: WorkloadOptions): Promise<Workload> {
  const cwd = scratch();
  const programs = [program("bare"), program("sluice"), program("generate-text"), program("imports")] as const;
  const { files, packages } = loadedBy([programs[3]], cwd);
  return {
    warmUps: quick ? 1 : 2,
    slice: async () => {
      const [bare, sluice, generateText, imports] = programs.map((file) => cpuOf([file], cwd));
      return {
        units: 1,
        facts: {
          bareMs: bare ?? Number.NaN,
          sluiceMs: sluice ?? Number.NaN,
          generateTextMs: generateText ?? Number.NaN,
          importMs: (imports ?? Number.NaN) - cpuOf(["-e", "0"], cwd),
          files,
          zod: packages.includes("zod") ? 1 : 0,
        },
      };
    },
  };
}
