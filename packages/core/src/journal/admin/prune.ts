import { isSluiceError, SluiceError } from "../../base/errors.ts";
import { readEvents } from "../record.ts";
import type { PrunedRun, PruneQuery, RunEnd } from "../seam.ts";
import type { JournalStore, RunRow } from "../store/journal-store.ts";

/** Roots per call of `remove`, to limit how long it blocks other users of the store. */
const AT_ONCE = 100;

/** Removes the finished runs that a query selects, oldest first. */
export async function pruneRuns(store: JournalStore, query: PruneQuery): Promise<readonly PrunedRun[]> {
  check(query);
  const { endedBefore, keep = 0, dryRun = false } = query;
  const selected: PrunedRun[] = [];
  let finished = 0;
  for (const row of await store.runs()) {
    const end = await endOf(store, row);
    if (end === undefined) continue;
    finished += 1;
    if (finished <= keep || end === "unreadable" || row.owner?.live === true) continue;
    const { status, endedAt } = end;
    if (endedBefore !== undefined && endedAt >= endedBefore) continue;
    const tree = await store.runs(row.runId);
    const records = tree.reduce((sum, each) => sum + each.records, 0);
    selected.push({ runId: row.runId, status, createdAt: row.createdAt, endedAt, journals: tree.length, records });
  }
  selected.reverse();
  if (dryRun) return selected;
  const removed = new Set<string>();
  for (let at = 0; at < selected.length; at += AT_ONCE) {
    const ids = selected.slice(at, at + AT_ONCE).map(({ runId }) => runId);
    for (const runId of await store.remove(ids)) removed.add(runId);
  }
  return selected.filter(({ runId }) => removed.has(runId));
}

function check({ endedBefore, keep }: PruneQuery): void {
  const none = endedBefore === undefined && keep === undefined;
  const wrong = (keep !== undefined && !(Number.isSafeInteger(keep) && keep >= 0)) || Number.isNaN(endedBefore);
  if (!none && !wrong) return;
  const fix = "give endedBefore in epoch milliseconds, or keep as a whole number from 0";
  throw new SluiceError("Validation", "prune_query", `the query selects no runs: ${fix}`);
}

/** How and when a run ended. A run whose end cannot be read is kept for inspection. */
async function endOf(
  store: JournalStore,
  row: RunRow,
): Promise<{ readonly status: RunEnd["status"]; readonly endedAt: number } | "unreadable" | undefined> {
  try {
    if (row.end === undefined) return undefined;
    const [last] = await store.records(row.runId, row.records - 1);
    const endedAt = last === undefined ? undefined : readEvents(row.runId, last).at(-1)?.at;
    return endedAt === undefined ? "unreadable" : { status: row.end.status, endedAt };
  } catch (thrown) {
    if (UNREADABLE.some((code) => isSluiceError(thrown, code))) return "unreadable";
    throw thrown;
  }
}

const UNREADABLE = ["journal_damaged", "blob_damaged", "blob_missing"];
