import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { createHost, createJournalMemory, type RunEnd, type RunHost, verifyJournal } from "@sluice/core";
import { sqliteStore } from "@sluice/sqlite";
import { expect, test } from "vitest";
import { endOf, start } from "../support/journal.ts";
import { killedProgram } from "../support/killed-program.ts";
import { scratch } from "../support/sqlite-store.ts";

const FIXTURE = join(import.meta.dirname, "..", "fixtures", "host", "killed.ts");
const SEEDS = 20;
/** How often a run is killed before it may end. */
const KILLS = 3;

/** Numbers that look random and are the same every time. */
function numbersFrom(seed: number): (below: number) => number {
  let state = seed * 2_654_435_761;
  return (below) => {
    state = (Math.imul(state ^ (state >>> 15), 2_246_822_519) + 374_761_393) >>> 0;
    return state % below;
  };
}

interface Life {
  readonly lines: readonly string[];
  readonly killed: boolean;
}

/** One process's work on the run: killed by itself at a point, or by us once it said so many lines. */
async function live(
  folder: string,
  cache: string,
  death: { readonly point?: number; readonly line?: number },
): Promise<Life> {
  const args = [
    "--conditions=@sluice/source",
    "--disable-warning=ExperimentalWarning",
    FIXTURE,
    folder,
    String(death.point ?? 0),
  ];
  const child = spawn(process.execPath, args, {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, NODE_COMPILE_CACHE: cache },
  });
  const exited = once(child, "exit");
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line);
    if (lines.length === death.line) child.kill("SIGKILL");
  }
  const [code, signal] = await exited;
  if (signal !== "SIGKILL") expect(code).toBe(0);
  return { lines, killed: signal === "SIGKILL" };
}

async function recorded(host: RunHost): Promise<ReadonlySet<string>> {
  const journals = await host.journal("r1");
  if (journals.length > 0) expect(verifyJournal(journals).faults).toEqual([]);
  const done = journals.flatMap(({ runId, records }) =>
    records.filter(({ phase }) => phase === "done").map(({ stepId }) => `${runId} ${stepId}`),
  );
  expect(new Set(done).size).toBe(done.length);
  return new Set(done);
}

/** What the program comes to when nobody disturbs it. */
async function undisturbed(): Promise<RunEnd> {
  const host = createHost(createJournalMemory().connect());
  const task = await start(
    host,
    killedProgram(() => undefined),
    "r1",
    {},
  );
  await host.signal("r1", { name: "go", payload: "went", by: "somebody" });
  return await endOf(task);
}

async function killedAndResumed(seed: number, folder: string, cache: string): Promise<void> {
  const random = numbersFrom(seed);
  const host = sqliteStore(folder);
  try {
    let calls = 0;
    for (let kills = 0; ; kills += 1) {
      const before = await recorded(host);
      // Half of the deaths are from inside, at an exact point; the others come from outside and hit anywhere.
      const death = kills >= KILLS ? {} : seed % 2 === 0 ? { point: 1 + random(90) } : { line: 1 + random(25) };
      const { lines, killed } = await live(folder, cache, death);
      const called = lines.filter((line) => line.startsWith("called ")).map((line) => line.slice("called ".length));
      calls += called.length;
      expect(called.filter((step) => before.has(step))).toEqual([]);
      expect(new Set(called).size).toBe(called.length);
      // What the program was told it has is in the journal, killed or not.
      const after = await recorded(host);
      for (const line of lines) if (line.startsWith("saw ")) expect(after).toContain(line.slice("saw ".length));
      // A kill may come after the end was recorded.
      const status = (await host.get("r1"))?.status;
      if (!killed) expect(status).toBe("completed");
      if (status === "completed") break;
    }
    expect(await host.result("r1")).toEqual(await undisturbed());
    const steps = [...(await recorded(host))].filter((step) => / (read|write|long|last)$/.test(step));
    expect(steps).toHaveLength(4 + 6 * 3);
    // At most what was under way at a kill was called again.
    expect(calls).toBeLessThanOrEqual(steps.length + KILLS * 5);
  } finally {
    await host.close();
  }
}

test("a process that is killed anywhere leaves a run that others finish: nothing recorded is called again, the chain is whole", {
  timeout: 240_000,
}, async () => {
  const root = scratch();
  const seeds = Array.from({ length: SEEDS }, (_, seed) => seed);
  const worker = async (): Promise<void> => {
    for (let seed = seeds.shift(); seed !== undefined; seed = seeds.shift()) {
      await killedAndResumed(seed, join(root, String(seed)), join(root, "cache"));
    }
  };
  await Promise.all([worker(), worker()]);
});
