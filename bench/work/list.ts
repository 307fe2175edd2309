import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { sqliteHost } from "@sluice/sqlite";
import type { Workload, WorkloadOptions } from "../measure.ts";
import { scratch } from "../session.ts";

/** The store's keys of records begin with the run's number, see its schema. */
const SEQ_SPACE = 2 ** 24;
const LISTED = 30;

/** Lists the newest runs of a store of that size. Each run has two child runs; the listed ones have that many records. */
export function listOf(runs: number, records = 1): (options: WorkloadOptions) => Promise<Workload> {
  return async ({ quick }) => {
    const folder = join(scratch(), "store");
    await sqliteHost(folder).close();
    fill(join(folder, "journal.db"), quick ? Math.ceil(runs / 100) : runs, records);
    const host = sqliteHost(folder, { readOnly: true });
    return {
      warmUps: quick ? 1 : 5,
      slice: async () => {
        const units = quick ? 2 : 50;
        for (let done = 0; done < units; done += 1) {
          const listed = await host.list({ limit: LISTED });
          // The input of a run is in its first record.
          for (const { runId } of listed) await host.records(runId, 0, 1);
          if (!quick && listed.length !== LISTED) throw new Error("other runs were listed than were asked for");
        }
        return { units, facts: {} };
      },
      close: () => host.close(),
    };
  };
}

function fill(journal: string, runs: number, records: number): void {
  const db = new DatabaseSync(journal);
  const addRun = db.prepare(
    "INSERT INTO runs (no, run_id, root_no, parent_id, created_at, end_status, end_value, input) VALUES (?, ?, ?, ?, ?, 'completed', '{}', '{\"task\":\"x\"}')",
  );
  const addTree = db.prepare("INSERT INTO trees (root_no, epoch) VALUES (?, 1)");
  const addChain = db.prepare("INSERT INTO chains (run_no, records, head) VALUES (?, 1, '')");
  const addRecord = db.prepare(
    "INSERT INTO records (place, ordinal, step_id, phase, incarnation, hash, value, events) VALUES (?, -1, 'start', 'life', 'i', '', 'null', '[]')",
  );
  db.exec("BEGIN");
  for (let run = 0; run < runs; run += 1) {
    const root = run * 3 + 1;
    for (let of = 0; of < 3; of += 1) {
      const child = of === 0 ? "" : `/fan-1/${of}`;
      addRun.run(root + of, `run${run}${child}`, root, of === 0 ? null : `run${run}`, run);
      addChain.run(root + of);
      addRecord.run((root + of) * SEQ_SPACE);
    }
    if (runs - run <= LISTED) for (let seq = 1; seq < records; seq += 1) addRecord.run(root * SEQ_SPACE + seq);
    addTree.run(root);
  }
  db.exec("COMMIT");
  db.close();
}
