// Counted are calls of functions of the packages, by V8's precise coverage and in a process of its own for each walk and each
// baseline, once it is warm; loading a module is no call. A file is part of a walk when at least one of its functions
// was called more often than in the baseline, and has code of the walk's own when the baseline does not call that function at all.
import { execFile } from "node:child_process";
import { globSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { z } from "zod";
import { BUDGETS, type Budget } from "./budgets.ts";
import { type Counts, callsIn, modulesIn, root } from "./coverage.ts";
import type { SCENARIOS } from "./scenarios.ts";
import { type Share, shareOf } from "./share.ts";

type ScenarioName = keyof typeof SCENARIOS | "a letter";

interface Plan {
  readonly about: string;
  readonly walk: ScenarioName;
  /** Nothing, where nothing else happens beside the walk. */
  readonly baseline?: ScenarioName;
}

const PLANS = {
  "read-call": {
    about: "one read call inside the envelope, beyond a second turn without a call",
    walk: "a read call",
    baseline: "two turns",
  },
  grant: {
    about: "one grant from request to consumption, beyond the same write inside the envelope",
    walk: "a granted write",
    baseline: "a write",
  },
  "fan-out": {
    about: "fan-out to two and their join, beyond the same four states in sequence",
    walk: "a fan-out",
    baseline: "four states",
  },
  resume: {
    about: "resume after a stop in the last turn, beyond a run without a stop",
    walk: "two states resumed",
    baseline: "two states",
  },
  key: { about: "one letter typed in the app, beyond the idle app", walk: "a letter" },
  route: {
    about: "from a stage's result to the next stage's first hook, beyond what happens between two turns of a stage",
    walk: "a route",
    baseline: "a turn",
  },
} as const satisfies Readonly<Record<string, Plan>>;

export type WalkName = keyof typeof PLANS | "run";
export const WALKS: readonly WalkName[] = ["read-call", "grant", "fan-out", "resume", "run", "key", "route"];

export interface Measured {
  readonly name: WalkName;
  readonly about: string;
  /** All that ran, the baseline included. */
  readonly all: Counts;
  /** Beyond the baseline; absent for a whole process. */
  readonly share?: Share;
  /** Modules that were loaded, for a whole process. */
  readonly modules?: number;
  readonly budget?: Budget;
}

const run = promisify(execFile);
const FROM_SOURCES = [
  "--conditions=@sluice/source",
  "--import",
  pathToFileURL(join(import.meta.dirname, "load-sources.ts")).href,
];
const countsSchema = z.record(z.string(), z.record(z.string(), z.number()));
const maxBuffer = 16 * 1024 * 1024;

export async function measure(name: WalkName): Promise<Measured> {
  const budget = new Map<string, Budget>(Object.entries(BUDGETS)).get(name);
  const limited = budget === undefined ? {} : { budget };
  if (name === "run") {
    return {
      name,
      about: "`sluice run` of one stage of one turn, the whole process",
      ...(await countCommand()),
      ...limited,
    };
  }
  const plan: Plan = PLANS[name];
  const all = await countScenario(plan.walk);
  const share = shareOf(all, plan.baseline === undefined ? {} : await countScenario(plan.baseline));
  return { name, about: plan.about, all, share, ...limited };
}

/** The files that count against the budget. */
export function budgeted({ all, share, budget }: Measured): number {
  return Object.keys(budget?.of === "more" && share !== undefined ? share.more : all).length;
}

async function countScenario(name: ScenarioName): Promise<Counts> {
  const child = join(import.meta.dirname, "child.ts");
  // What starts this may measure coverage itself, or load the sources of the packages.
  const env = { ...process.env, NODE_OPTIONS: "", NODE_V8_COVERAGE: undefined };
  const { stdout } = await run(process.execPath, [...FROM_SOURCES, child, name], { env, maxBuffer });
  return countsSchema.parse(JSON.parse(stdout));
}

const commandPipeline = join(root, "test/fixtures/command/pipelines.ts#single");
const commandScript = { stages: { work: [{ calls: [{ tool: "finish", input: { text: "done" } }] }] } };

async function countCommand(): Promise<{ readonly all: Counts; readonly modules: number }> {
  const folder = mkdtempSync(join(tmpdir(), "sluice-walks-run-"));
  try {
    const [work, coverage, script] = [join(folder, "work"), join(folder, "coverage"), join(folder, "script.json")];
    mkdirSync(work);
    writeFileSync(script, JSON.stringify(commandScript));
    const env = {
      PATH: dirname(process.execPath),
      HOME: join(folder, "home"),
      XDG_STATE_HOME: join(folder, "state"),
      NODE_V8_COVERAGE: coverage,
    };
    const args = ["run", commandPipeline, "Do it.", "--model", `scripted:${script}`, "--sandbox", "off"];
    await run(process.execPath, [...FROM_SOURCES, commandFile(), ...args], { cwd: work, env, maxBuffer });
    const [file, ...more] = readdirSync(coverage);
    if (file === undefined || more.length > 0) throw new Error(`${more.length + 1} processes ran, one was expected`);
    const counted: unknown = JSON.parse(readFileSync(join(coverage, file), "utf8"));
    return { all: callsIn(counted), modules: modulesIn(counted) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function commandFile(): string {
  const [file, ...more] = globSync("packages/*/bin/sluice.js", { cwd: root });
  if (file === undefined || more.length > 0) throw new Error("there is not one packages/*/bin/sluice.js");
  return join(root, file);
}
