import { join } from "node:path";
import { DatabaseSync, type SQLOutputValue } from "node:sqlite";
import type { JournalRecord } from "@sluice/core";
import { GENESIS, hashRecord } from "@sluice/core/host";
import { RECORD_PHASES } from "@sluice/core/runtime";

/** `SEQ_SPACE` of the store's schema: a record's key is its run's number times this, and its seq. */
export const SEQ_SPACE = 2 ** 24;

/**
 * Puts `to` wherever records say `from`, and hashes each chain again; nothing else of any record changes. A run is resumed in the
 * folder that its record names and in no other, so a copy that is resumed elsewhere has to name that folder.
 */
export function rewrite(store: string, from: string, to: string): void {
  const db = new DatabaseSync(join(store, "journal.db"));
  const hashes = new Map<string, string>();
  const moved = (text: SQLOutputValue | undefined): string =>
    String(text ?? "")
      .replaceAll(from, to)
      .replaceAll(/[0-9a-f]{64}/g, (found) => hashes.get(found) ?? found);
  const runs = db.prepare("SELECT no, root_no, run_id FROM runs").all();
  // A join names the heads of its siblings, and a fork that of the other run, which was there before.
  const order = runs.toSorted(
    (a, b) => Number(a.root_no) - Number(b.root_no) || String(b.run_id).length - String(a.run_id).length,
  );
  const recordsOf = db.prepare("SELECT * FROM records WHERE place >= ? AND place < ? ORDER BY place");
  const put = db.prepare("UPDATE records SET value = ?, events = ?, hash = ? WHERE place = ?");
  const putHead = db.prepare("UPDATE chains SET head = ? WHERE run_no = ?");
  for (const { no, run_id } of order) {
    let head: string = GENESIS;
    for (const row of recordsOf.all(Number(no) * SEQ_SPACE, (Number(no) + 1) * SEQ_SPACE)) {
      const record: Omit<JournalRecord, "hash"> = {
        seq: Number(row.place) % SEQ_SPACE,
        ordinal: Number(row.ordinal),
        stepId: String(row.step_id),
        phase: phaseOf(row.phase),
        incarnation: String(row.incarnation),
        value: moved(row.value),
        events: moved(row.events),
      };
      head = hashRecord(head, String(run_id), record);
      hashes.set(String(row.hash), head);
      put.run(record.value, record.events, head, Number(row.place));
    }
    putHead.run(head, Number(no));
  }
  for (const [table, column] of OTHERS) {
    const rows = db.prepare(`SELECT rowid AS id, ${column} AS text FROM ${table} WHERE ${column} IS NOT NULL`).all();
    for (const { id, text } of rows)
      db.prepare(`UPDATE ${table} SET ${column} = ? WHERE rowid = ?`).run(moved(text), Number(id));
  }
  db.close();
}

/** What may say it beside records. */
const OTHERS = [
  ["runs", "input"],
  ["runs", "end_value"],
  ["requests", "body"],
  ["signals", "received"],
] as const;

function phaseOf(text: SQLOutputValue | undefined): JournalRecord["phase"] {
  const phase = RECORD_PHASES.find((known) => known === text);
  if (phase === undefined) throw new Error(`a record of another phase: ${String(text)}`);
  return phase;
}
