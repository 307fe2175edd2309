import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { JournalRecord } from "@sluice/core";
import { createHost, createMemoryJournals } from "@sluice/core/host";
import { sqliteHost } from "@sluice/sqlite";
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
  // Only the store differs from memory, where the warm-up takes seconds.
  const inMemory = await memoryStages(options);
  for (let done = 0; done < inMemory.warmUps; done += 1) await inMemory.slice();
  await inMemory.close?.();
  const host = sqliteHost(join(folder, "store"));
  const session = benchSession(folder, { model: reviewModel(), host: host });
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

/** Which records are synced before the next step. */
type Synced = (record: JournalRecord) => boolean;
/** Syncs only the begin and the result of a model call; entering and leaving a stage are synced with the next commit. */
const ofModels: Synced = ({ stepId }) => stepId.endsWith("/model");

/**
 * The same bytes in as many commits: a record's row, and its run's row with the count and the head of the chain. This is the
 * cost of the disk and SQLite for any such journal. Records that are not synced use a second connection, since `synchronous`
 * cannot change inside a transaction.
 */
export function rawCommits(synced?: Synced): (options: WorkloadOptions) => Promise<Workload> {
  return async (options) => {
    const units = stagesOf(options);
    const folder = scratch();
    const records = await recordsOf(units, folder);
    const file = join(folder, "raw.db");
    const full = openRaw(file);
    const riding = synced === undefined ? undefined : new DatabaseSync(file);
    riding?.exec("PRAGMA synchronous = NORMAL");
    const withSync = rawWriter(full);
    const without = riding === undefined ? withSync : rawWriter(riding);
    let place = 0;
    return {
      warmUps: options.quick ? 1 : 20,
      slice: async () => {
        const before = performance.now();
        for (const record of records) {
          (synced?.(record) === false ? without : withSync)(record, place);
          place += 1;
        }
        const wallUs = ((performance.now() - before) * 1000) / units;
        return { units, facts: { commits: records.length / units, wallUs } };
      },
      close: async () => {
        riding?.close();
        full.close();
      },
    };
  };
}

/**
 * The stage in memory, with a raw commit of each record when it is made: what any store with a synced commit per record costs.
 * It is more than both costs added up, since the stage continues with cold caches after each sync.
 */
export async function stagesWithRawCommits({ quick }: WorkloadOptions): Promise<Workload> {
  const units = stagesOf({ quick });
  const looped = loopOf(units);
  const folder = scratch();
  const db = openRaw(join(folder, "raw.db"));
  const commit = rawWriter(db);
  const store = createMemoryJournals({ keepFinished: 1 }).connect();
  let place = 0;
  const host = createHost({
    ...store,
    append: (given) => {
      commit(given.record, place);
      place += 1;
      return store.append(given);
    },
  });
  const session = benchSession(folder, { model: reviewModel(), host });
  return {
    warmUps: quick ? 1 : 20,
    slice: async () => {
      completed(await session.run(looped, { task: TASK }));
      return { units, facts: {} };
    },
    close: async () => {
      await session.close();
      db.close();
    },
  };
}

export const ridingCommits = rawCommits(ofModels);
export const unsyncedCommits = rawCommits(() => false);

function openRaw(file: string): DatabaseSync {
  const db = new DatabaseSync(file);
  db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
  db.exec(
    "CREATE TABLE records (place INTEGER PRIMARY KEY, ordinal INTEGER, step_id TEXT, phase TEXT, incarnation TEXT, hash TEXT, value TEXT, events TEXT) STRICT",
  );
  db.exec("CREATE TABLE chains (run_no INTEGER PRIMARY KEY, records INTEGER, head TEXT) STRICT");
  db.exec("INSERT INTO chains VALUES (1, 0, '')");
  return db;
}

/** Commits one record through this connection. */
function rawWriter(db: DatabaseSync): (record: JournalRecord, place: number) => void {
  const begin = db.prepare("BEGIN IMMEDIATE");
  const insert = db.prepare("INSERT INTO records VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
  const advance = db.prepare("UPDATE chains SET records = ?, head = ? WHERE run_no = 1");
  const commit = db.prepare("COMMIT");
  return ({ ordinal, stepId, phase, incarnation, hash, value, events }, place) => {
    begin.run();
    insert.run(place, ordinal, stepId, phase, incarnation, hash, value, events);
    advance.run(place + 1, hash);
    commit.run();
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

/** The size of a run's database, compared with the texts of its records. */
export function bytesOnDisk(records: number): (options: WorkloadOptions) => Promise<Workload> {
  return async ({ quick }) => await diskOf((quick ? records / 20 : records) / RECORDS_A_STAGE);
}

/** Enter, the begin and the result of the model call, leave. */
const RECORDS_A_STAGE = 4;

async function diskOf(units: number): Promise<Workload> {
  const folder = scratch();
  let slices = 0;
  return {
    warmUps: 0,
    slice: async () => {
      slices += 1;
      const store = join(folder, `store-${slices}`);
      const session = benchSession(folder, { model: reviewModel(), host: () => sqliteHost(store) });
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
