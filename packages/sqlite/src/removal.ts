import type { DatabaseSync } from "node:sqlite";
import type { Blobs } from "./blobs.ts";
import { isBusy } from "./faults.ts";
import type { Owners } from "./owners.ts";
import { integer, SEQ_SPACE, textOrNone, transactions } from "./schema.ts";

/** Removes runs from the store. A failed call leaves only what earlier transactions did. */
export interface Remover {
  /** Removes finished trees without a live owner in one transaction. Returns their ids. */
  remove(rootIds: readonly string[]): readonly string[];
  /** Removes those blobs that no row names. */
  removeUnnamed(digests: readonly string[]): void;
  /** Returns free space to the disk if there is much of it and no owner lives. */
  shrink(): void;
}

/** Created on the first removal, so that commits before it need not maintain them. */
const INDEXES = `
CREATE INDEX IF NOT EXISTS records_by_value_blob ON records (value_blob) WHERE value_blob IS NOT NULL;
CREATE INDEX IF NOT EXISTS records_by_events_blob ON records (events_blob) WHERE events_blob IS NOT NULL;
CREATE INDEX IF NOT EXISTS runs_by_end_blob ON runs (end_blob) WHERE end_blob IS NOT NULL;
CREATE INDEX IF NOT EXISTS runs_by_input_blob ON runs (input_blob) WHERE input_blob IS NOT NULL;
`;

const NAMED = `
SELECT EXISTS (SELECT 1 FROM records WHERE value_blob = :digest) OR EXISTS (SELECT 1 FROM records WHERE events_blob = :digest)
  OR EXISTS (SELECT 1 FROM runs WHERE end_blob = :digest) OR EXISTS (SELECT 1 FROM runs WHERE input_blob = :digest) AS named`;

/** The number and share of free pages that justify a VACUUM. */
const MANY_PAGES = 256;
const MANY_OF_ALL = 0.25;

export function createRemover(db: DatabaseSync, blobs: Blobs, owners: Owners): Remover {
  const transact = transactions(db);
  /** Overwrites what is removed, so that a later copy of the file does not contain it. */
  const wiping = <T>(work: () => T): T => {
    db.exec("PRAGMA secure_delete = ON");
    try {
      return work();
    } finally {
      db.exec("PRAGMA secure_delete = OFF");
    }
  };
  const pragma = (name: string): number => integer(db.prepare(`PRAGMA ${name}`).get() ?? {}, name);

  return {
    remove(rootIds) {
      const rootOf = db.prepare(
        "SELECT r.no, t.owner FROM runs r JOIN trees t ON t.root_no = r.no WHERE r.run_id = ? AND NOT EXISTS (SELECT 1 FROM runs WHERE root_no = r.no AND end_status IS NULL)",
      );
      // Children first, since they reference their root.
      const runsOf = db.prepare("SELECT no FROM runs WHERE root_no = ? ORDER BY no DESC");
      const dropRecords = db.prepare("DELETE FROM records WHERE place >= ? AND place < ?");
      const dropTree = db.prepare("DELETE FROM trees WHERE root_no = ?");
      const dropWake = db.prepare("DELETE FROM wakes WHERE root_no = ?");
      const drops = ["chains WHERE run_no", "requests WHERE run_no", "signals WHERE run_no", "runs WHERE no"].map(
        (from) => db.prepare(`DELETE FROM ${from} = ?`),
      );
      const removeTree = (rootId: string): boolean => {
        const root = rootOf.get(rootId);
        if (root === undefined) return false;
        const owner = textOrNone(root, "owner");
        if (owner !== undefined && owners.isLive(owner)) return false;
        const rootNo = integer(root, "no");
        const all = runsOf.all(rootNo).map((row) => integer(row, "no"));
        dropTree.run(rootNo);
        dropWake.run(rootNo);
        for (const no of all) {
          dropRecords.run(no * SEQ_SPACE, (no + 1) * SEQ_SPACE);
          for (const drop of drops) drop.run(no);
        }
        return true;
      };
      return wiping(() => transact(() => rootIds.filter(removeTree)));
    },

    removeUnnamed(digests) {
      // A blob is removed only after the transaction that removed its rows.
      transact(() => {
        db.exec(INDEXES);
        const named = db.prepare(NAMED);
        blobs.remove(digests.filter((digest) => integer(named.get({ digest }) ?? {}, "named") === 0));
      });
    },

    shrink() {
      const free = pragma("freelist_count");
      const isWorthwhile = free >= MANY_PAGES && free >= pragma("page_count") * MANY_OF_ALL;
      try {
        // Skipped while owners live, since a VACUUM blocks writers and later runs reuse free pages anyway.
        if (isWorthwhile && !owners.anyLive()) db.exec("VACUUM");
        db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
      } catch (thrown) {
        if (!isBusy(thrown)) throw thrown;
      }
    },
  };
}
