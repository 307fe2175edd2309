import { openForReading } from "../opening.ts";
import { createOwners } from "../owners.ts";
import { integer, textOrNone } from "../schema.ts";

/** The root runs of a store by what they do, and what waits. */
export interface RunCounts {
  readonly completed: number;
  readonly failed: number;
  readonly cancelled: number;
  /** A live process executes them. */
  readonly running: number;
  /** No process executes them until their time to wake. */
  readonly sleeping: number;
  /** All other runs without an end, those that are due included. */
  readonly suspended: number;
  /** Those that have to continue now. */
  readonly due: number;
  /** Requests of all runs that are open. */
  readonly openRequests: number;
}

const BY_STATUS = `
SELECT r.end_status, t.owner, w.wake_at > ?1 AS sleeps, w.wake_at <= ?1 OR w.signalled = 1 AS due, count(*) AS n
FROM trees t JOIN runs r ON r.no = t.root_no LEFT JOIN wakes w ON w.root_no = t.root_no
GROUP BY 1, 2, 3, 4`;

/** Counts the runs of the store in `folder`, at a time in epoch milliseconds. Reads every root, so call it rarely. */
export function countRuns(folder: string, now: number): RunCounts {
  const { db, folder: parts } = openForReading(folder);
  try {
    const owners = createOwners(parts.owners);
    const live = new Map<string, boolean>();
    const isLive = (owner: string | undefined): boolean => {
      if (owner === undefined) return false;
      const known = live.get(owner) ?? owners.isLive(owner);
      live.set(owner, known);
      return known;
    };
    const counts = { completed: 0, failed: 0, cancelled: 0, running: 0, sleeping: 0, suspended: 0, due: 0 };
    for (const row of db.prepare(BY_STATUS).iterate(now)) {
      const n = integer(row, "n");
      const end = textOrNone(row, "end_status");
      if (end === "completed" || end === "failed" || end === "cancelled") counts[end] += n;
      else if (isLive(textOrNone(row, "owner"))) counts.running += n;
      else {
        // A signal makes a sleeping run due.
        if (row.due === 1) counts.due += n;
        if (row.sleeps === 1 && row.due !== 1) counts.sleeping += n;
        else counts.suspended += n;
      }
    }
    return { ...counts, openRequests: integer(db.prepare("SELECT count(*) AS n FROM requests").get() ?? {}, "n") };
  } finally {
    db.close();
  }
}
