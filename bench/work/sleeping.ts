import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { DatabaseSync } from "node:sqlite";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { RunHost, StateExecutor } from "@sluice/core";
import { sqliteHost } from "@sluice/sqlite";
import { createSession, type Session } from "@sluice/stages";
import { z } from "zod";
import { NAPS } from "../../test/support/sleeping-desk.ts";
import type { Workload, WorkloadOptions } from "../measure.ts";
import { scratch } from "../session.ts";
import { napping } from "./naps.ts";
import { cpuOf, residentMbOf } from "./process-cpu.ts";

const COMMAND = fileURLToPath(new URL("../../packages/cli/bin/sluice.js", import.meta.url));
const PIPELINES = fileURLToPath(new URL("naps.ts", import.meta.url));
/** The store's keys of records begin with the run's number, see its schema. */
const SEQ_SPACE = 2 ** 24;
/** Of the runs that nothing wakes while it is measured. */
const FAR_MS = 24 * 3_600_000;
const IDLE_MS = 5_000;
/** Until the first of the runs that are woken, and between them. */
const [FIRST_MS, APART_MS] = [2_500, 100];

/** The same kind as in the config of the worker; here it only falls asleep. */
const nap: StateExecutor = {
  kind: "nap",
  act: async (_input, scope) => {
    const { ms } = z.object({ ms: z.number() }).parse(scope.ctx.run.input);
    const from = await scope.steps.now("from");
    await scope.sleep("sleep/1", from + ms);
    return { status: "completed", output: [], turns: 0, usage: { inputTokens: 0, outputTokens: 0 } };
  },
};

const startedSchema = z.object({
  source: z.object({
    kind: z.literal("file"),
    file: z.string(),
    export: z.string(),
    files: z.array(z.object({ file: z.string(), digest: z.string() })),
    config: z.object({ file: z.string(), files: z.array(z.object({ file: z.string(), digest: z.string() })) }),
  }),
});
const lineSchema = z.object({ type: z.string(), lateMs: z.number().optional() });

/** A worker over a store with so many sleeping runs: its CPU while nothing is due, and how late it wakes some. */
export function sleepingRuns(sleeping: number): (options: WorkloadOptions) => Promise<Workload> {
  return async ({ quick }) => {
    const [home, work] = [scratch(), scratch()];
    const folder = join(work, ".sluice", "store");
    writeFileSync(join(work, "sluice.config.js"), NAPS);
    writeFileSync(join(work, "package.json"), '{ "type": "module" }');
    const env = { PATH: process.env.PATH ?? "", HOME: home, OLLAMA_HOST: "http://127.0.0.1:9" };
    const run = ["run", `${PIPELINES}#napping`, "--input", `ms:=${FAR_MS}`, "--trust", "--output-format", "json"];
    const runId = firstRun([...run, "--suspend-sleeps"], work, env);
    fill(join(folder, "journal.db"), quick ? Math.ceil(sleeping / 100) : sleeping);
    const host = sqliteHost(folder);
    const source = await sourceOf(host, runId);
    const worker = spawn(process.execPath, [COMMAND, "serve", "--json", "--no-metrics"], {
      cwd: work,
      env,
      stdio: ["ignore", "pipe", "inherit"],
    });
    const printed = await watched(worker);
    const woken = quick ? 3 : 50;
    const sessionOf = (): Session => createSession({ host, executors: [nap], cwd: work, env, suspendSleepsOver: 0 });
    return {
      warmUps: 1,
      slice: async () => {
        const pid = worker.pid ?? 0;
        const idle = await percentOf(pid, () => setTimeout(quick ? 300 : IDLE_MS));
        const session = sessionOf();
        const runs = Array.from({ length: woken }, (_, at) =>
          session.start(napping, { ms: FIRST_MS + at * APART_MS }, { source }),
        );
        for (const one of runs) await one;
        await session.close();
        printed.length = 0;
        const before = cpuOf(pid);
        while (printed.filter(({ type }) => type === "ended").length < woken) await setTimeout(50);
        const late = printed.flatMap(({ lateMs }) => lateMs ?? []).sort((one, other) => one - other);
        return {
          units: woken,
          facts: {
            idlePercent: idle,
            wakeCpuMs: (cpuOf(pid) - before) / woken,
            lateMs: late[Math.floor(late.length / 2)] ?? Number.NaN,
            latestMs: late.at(-1) ?? Number.NaN,
            residentMb: residentMbOf(pid),
          },
        };
      },
      close: async () => {
        worker.kill("SIGTERM");
        await once(worker, "exit");
        await host.close();
      },
    };
  };
}

function firstRun(args: readonly string[], cwd: string, env: NodeJS.ProcessEnv): string {
  try {
    execFileSync(process.execPath, [COMMAND, ...args], { cwd, env, stdio: ["ignore", "pipe", "ignore"] });
  } catch (thrown) {
    // A run that is left asleep has an exit code of its own.
    const ended = z.object({ status: z.literal(3), stdout: z.instanceof(Buffer) }).parse(thrown);
    return z.object({ runId: z.string() }).parse(JSON.parse(ended.stdout.toString())).runId;
  }
  throw new Error("the first run did not fall asleep");
}

/** What the command recorded about the origin of a run's pipeline. */
async function sourceOf(host: RunHost, runId: string): Promise<z.infer<typeof startedSchema>["source"]> {
  for await (const event of host.events(runId))
    if (event.type === "run.started") return startedSchema.parse(event.data).source;
  throw new Error(`run ${runId} has no run.started event`);
}

/** The lines of a worker; resolves once it serves. */
async function watched(worker: ChildProcess): Promise<z.infer<typeof lineSchema>[]> {
  const printed: z.infer<typeof lineSchema>[] = [];
  if (worker.stdout === null) throw new Error("the worker has no output");
  const lines = createInterface({ input: worker.stdout });
  lines.on("line", (line) => printed.push(lineSchema.parse(JSON.parse(line))));
  await once(lines, "line");
  return printed;
}

async function percentOf(pid: number, work: () => Promise<unknown>): Promise<number> {
  const [before, began] = [cpuOf(pid), performance.now()];
  await work();
  return ((cpuOf(pid) - before) / (performance.now() - began)) * 100;
}

/** Adds runs that sleep for long. */
function fill(journal: string, runs: number): void {
  const db = new DatabaseSync(journal);
  const from = Number(db.prepare("SELECT max(no) AS no FROM runs").get()?.no ?? 0) + 1;
  const addRun = db.prepare("INSERT INTO runs (no, run_id, root_no, created_at, input) VALUES (?, ?, ?, ?, '{}')");
  const addTree = db.prepare("INSERT INTO trees (root_no, epoch) VALUES (?, 1)");
  const addChain = db.prepare("INSERT INTO chains (run_no, records, head) VALUES (?, 1, '')");
  const addRecord = db.prepare(
    "INSERT INTO records (place, ordinal, step_id, phase, incarnation, hash, value, events) VALUES (?, -1, 'start', 'lifecycle', 'i', '', 'null', '[]')",
  );
  const addWake = db.prepare("INSERT INTO wakes (root_no, wake_at) VALUES (?, ?)");
  const now = Date.now();
  db.exec("BEGIN");
  for (let no = from; no < from + runs; no += 1) {
    addRun.run(no, `filler${no}`, no, now);
    addTree.run(no);
    addChain.run(no);
    addRecord.run(no * SEQ_SPACE);
    addWake.run(no, now + FAR_MS + no);
  }
  db.exec("COMMIT");
  db.close();
}
