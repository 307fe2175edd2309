import { isSluiceError, SluiceError } from "../../base/errors.ts";
import { readEvents } from "../record/hash-chain.ts";
import type { PrunedRun, PruneQuery, RunEnd } from "../seam.ts";
import type { JournalStore, RunRow } from "../store/journal-store.ts";

/** Roots that are removed together: a store that is in use is held up for no longer than these take. */
const AT_ONCE = 100;

/** Removes the finished runs a query lets go, the oldest first. */
export async function pruneRuns(store: JournalStore, query: PruneQuery): Promise<readonly PrunedRun[]> {
  check(query);
  const { endedBefore, keep = 0, dryRun = false } = query;
  const going: PrunedRun[] = [];
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

/** How and when a run ended. One whose end cannot be read stays, to be looked at. */
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
