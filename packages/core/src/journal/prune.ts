import { isSluiceError, SluiceError } from "../base/errors.ts";
import { readEvents } from "./chain.ts";
import type { PrunedRun, PruneQuery } from "./seam.ts";
import type { JournalStore, RunRow } from "./store.ts";

/** Roots that are removed together: a store that is in use is held up for no longer than these take. */
const AT_ONCE = 100;

/** Removes the finished runs a query lets go, the oldest first. */
export async function pruneRuns(store: JournalStore, query: PruneQuery): Promise<readonly PrunedRun[]> {
  check(query);
  const { endedBefore, keep = 0, dryRun = false } = query;
  const going: PrunedRun[] = [];
  let finished = 0;
  for (const row of await store.runs()) {
    const { status } = row.end ?? {};
    if (status === undefined) continue;
    finished += 1;
    if (finished <= keep || row.owner?.live === true) continue;
    // What began later than that cannot have ended before it.
    if (endedBefore !== undefined && row.createdAt >= endedBefore) continue;
    const endedAt = await endOf(store, row);
    if (endedAt === undefined || (endedBefore !== undefined && endedAt >= endedBefore)) continue;
    const tree = await store.runs(row.runId);
    const records = tree.reduce((sum, each) => sum + each.records, 0);
    going.push({ runId: row.runId, status, createdAt: row.createdAt, endedAt, journals: tree.length, records });
  }
  going.reverse();
  if (dryRun) return going;
  const gone = new Set<string>();
  for (let at = 0; at < going.length; at += AT_ONCE) {
    const ids = going.slice(at, at + AT_ONCE).map(({ runId }) => runId);
    for (const runId of await store.remove(ids)) gone.add(runId);
  }
  return going.filter(({ runId }) => gone.has(runId));
}

function check({ endedBefore, keep }: PruneQuery): void {
  const none = endedBefore === undefined && keep === undefined;
  const wrong = (keep !== undefined && !(Number.isSafeInteger(keep) && keep >= 0)) || Number.isNaN(endedBefore);
  if (!none && !wrong) return;
  const mend = "give endedBefore in epoch milliseconds, or keep as a whole number from 0";
  throw new SluiceError("Validation", "prune_query", `this says not which runs may go: ${mend}`);
}

/** When a run ended, by its last record. Undefined where that cannot be read: such a run stays, to be looked at. */
async function endOf(store: JournalStore, { runId, records }: RunRow): Promise<number | undefined> {
  const [last] = await store.records(runId, records - 1);
  if (last === undefined) return undefined;
  try {
    return readEvents(runId, last).at(-1)?.at;
  } catch (thrown) {
    if (isSluiceError(thrown, "journal_damaged")) return undefined;
    throw thrown;
  }
}
