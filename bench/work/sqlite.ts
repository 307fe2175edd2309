import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { JournalRecord } from "@sluice/core";
import { sqliteStore } from "@sluice/sqlite";
import type { Workload, WorkloadOptions } from "../measure.ts";
import { TASK } from "../review.ts";
import { benchSession, completed, scratch } from "../session.ts";
import { loopOf, memoryStages, reviewModel } from "./stages.ts";

const stagesOf = ({ quick }: WorkloadOptions): number => (quick ? 50 : 300);

/** The one-turn stage with its journal on disk. */
export async function sqliteStages(options: WorkloadOptions): Promise<Workload> {
  const units = stagesOf(options);
  const looped = loopOf(units);
  const folder = scratch();
  // All but the store is the same in memory, and warms up there in seconds.
  const inMemory = await memoryStages(options);
  for (let done = 0; done < inMemory.warmUps; done += 1) await inMemory.slice();
  await inMemory.close?.();
  const host = sqliteStore(join(folder, "store"));
  const session = benchSession(folder, { model: reviewModel(), store: host });
  return {
    warmUps: options.quick ? 1 : 20,
    slice: async () => {
      const run = session.start(looped, { task: TASK });
      completed(await run);
      const summary = await session.host.get(run.runId);
      return { units, facts: { commits: (summary?.records ?? 0) / units } };
    },
    close: async () => {
      await session.close();
      await host.close();
    },
  };
}

/**
 * The same bytes in as many commits: a record's row, and its run's row with the count and the head of the chain. What the disk
 * and SQLite take whoever writes such a journal.
 */
export async function rawCommits(options: WorkloadOptions): Promise<Workload> {
  const units = stagesOf(options);
  const folder = scratch();
  const records = await recordsOf(units, folder);
  const db = new DatabaseSync(join(folder, "raw.db"));
  db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
  db.exec(
    "CREATE TABLE records (place INTEGER PRIMARY KEY, ordinal INTEGER, step_id TEXT, phase TEXT, incarnation TEXT, hash TEXT, value TEXT, events TEXT) STRICT",
  );
  db.exec("CREATE TABLE chains (run_no INTEGER PRIMARY KEY, records INTEGER, head TEXT) STRICT");
  db.exec("INSERT INTO chains VALUES (1, 0, '')");
  const begin = db.prepare("BEGIN IMMEDIATE");
  const insert = db.prepare("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
  const advance = db.prepare("UPDATE chains SET records = ?, head = ? WHERE run_no = 1");
  const commit = db.prepare("COMMIT");
  let place = 0;
  return {
    warmUps: options.quick ? 1 : 20,
    slice: async () => {
      for (const { ordinal, stepId, phase, incarnation, hash, value, events } of records) {
        begin.run();
        insert.run(place, ordinal, stepId, phase, incarnation, hash, value, events);
        place += 1;
        advance.run(place, hash);
        commit.run();
      }
      return { units, facts: { commits: records.length / units } };
    },
    close: async () => db.close(),
  };
}

async function recordsOf(stages: number, folder: string): Promise<readonly JournalRecord[]> {
  const session = benchSession(folder, { model: reviewModel() });
  const run = session.start(loopOf(stages), { task: TASK });
  completed(await run);
  const [journal] = await session.host.journal(run.runId);
  await session.close();
  return journal?.records ?? [];
}

/** What a run leaves in the store beyond what it had to say: its database, over the texts of its records. */
export async function bytesOnDisk({ quick }: WorkloadOptions): Promise<Workload> {
  const units = quick ? 50 : 1000;
  const folder = scratch();
  let slices = 0;
  return {
    warmUps: 0,
    slice: async () => {
      slices += 1;
      const store = join(folder, `store-${slices}`);
      const session = benchSession(folder, { model: reviewModel(), store: () => sqliteStore(store) });
      const run = session.start(loopOf(units), { task: TASK });
      completed(await run);
      const [journal] = await session.host.journal(run.runId);
      const texts = (journal?.records ?? []).reduce((sum, { value, events }) => sum + value.length + events.length, 0);
      await session.close();
      return { units, facts: { bytes: bytesIn(store) / units, texts: texts / units } };
    },
  };
}

function bytesIn(folder: string): number {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return files.reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);
}
