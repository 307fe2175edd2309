import { SluiceError } from "../../base/errors.ts";
import type { JournalRecord, OpenRequest, RunJournal, RunSummary } from "../seam.ts";
import type { JournalStore, RunRow } from "./journal-store.ts";

export function unknownRun(runId: string): SluiceError {
  return new SluiceError("Session", "run_unknown", `there is no run ${runId} in this store`);
}

/** Whether a run is the one asked for or below it. */
function isWithin(runId: string, top: string): boolean {
  return runId === top || runId.startsWith(`${top}/`);
}

/** A run and everything below it, in order of creation; empty when there is no such run. */
export async function rowsWithin(store: JournalStore, runId: string): Promise<readonly RunRow[]> {
  const tree = await store.runs(runId);
  if (tree.length > 0) return tree;
  const row = await store.run(runId);
  const rows = row === undefined ? [] : await store.runs(row.rootId);
  return rows.filter((each) => isWithin(each.runId, runId));
}

/** Open requests, oldest first: of one run and everything below it, or of all. */
export async function openRequests(store: JournalStore, runId: string | undefined): Promise<readonly OpenRequest[]> {
  if (runId === undefined) return await unanswered(store);
  const row = await store.run(runId);
  if (row === undefined) return [];
  return (await unanswered(store, row.rootId)).filter((request) => isWithin(request.runId, runId));
}

/** What was answered waits for nobody, though its run may not have taken the answer up yet. */
async function unanswered(store: JournalStore, rootId?: string): Promise<readonly OpenRequest[]> {
  const open: OpenRequest[] = [];
  for (const request of await store.requests(rootId)) {
    const answers = await store.signals(request.runId, `request/${request.requestId}`);
    if (answers.length === 0) open.push(request);
  }
  return open;
}

export async function getRun(store: JournalStore, runId: string): Promise<RunSummary | undefined> {
  const row = await store.run(runId);
  return row === undefined ? undefined : summarise(row, await unanswered(store, row.rootId));
}

export async function listRuns(store: JournalStore, limit?: number): Promise<readonly RunSummary[]> {
  const rows = await store.runs(undefined, limit);
  const listed: RunSummary[] = [];
  // Only what is suspended may wait for somebody, and of a long list that is little.
  for (const row of rows) listed.push(summarise(row, isSuspended(row) ? await unanswered(store, row.rootId) : []));
  return listed;
}

function isSuspended({ end, owner }: RunRow): boolean {
  return end === undefined && owner?.live !== true;
}

/** `requests` are the open ones of the run's tree. */
function summarise(row: RunRow, requests: readonly OpenRequest[]): RunSummary {
  const { runId, parentId, createdAt, input, records, head, owner, end } = row;
  const base = { runId, createdAt, input, records, head, ...(parentId === undefined ? {} : { parentId }) };
  if (end !== undefined) return { ...base, status: end.status, end };
  if (owner?.live === true) return { ...base, status: "running", owner: owner.label };
  const waits = requests.some((request) => isWithin(request.runId, runId));
  return { ...base, status: "suspended", suspended: waits ? "waiting" : "interrupted" };
}

/** The records of one run from a seq on. */
export async function readRecords(
  store: JournalStore,
  runId: string,
  from: number,
  limit?: number,
): Promise<readonly JournalRecord[]> {
  const most = limit === undefined ? undefined : Math.max(0, Math.floor(limit));
  return await store.records(runId, from > 0 ? Math.ceil(from) : 0, most);
}

/** How often a run that is at work is read again, until nothing was added meanwhile. */
const READINGS = 5;

/** The journals of a run and everything below it, as they stood at one moment. */
export async function readJournal(store: JournalStore, runId: string): Promise<readonly RunJournal[]> {
  let rows = await rowsWithin(store, runId);
  for (let readings = 1; ; readings += 1) {
    const journals = await journalsOf(store, rows);
    // What ended does not change; where it did all the same, the audit is to see it.
    if (readings === READINGS || rows[0]?.end !== undefined) return journals;
    const after = await rowsWithin(store, runId);
    const same = after.length === rows.length && after.every(({ head }, index) => head === rows[index]?.head);
    if (same) return journals;
    rows = after;
  }
}

async function journalsOf(store: JournalStore, rows: readonly RunRow[]): Promise<readonly RunJournal[]> {
  const journals: RunJournal[] = [];
  for (const row of rows) journals.push(await journalOf(store, row));
  return journals;
}

/** The journal of one run, with what its row claims. */
export async function journalOf(store: JournalStore, row: RunRow): Promise<RunJournal> {
  const { runId, parentId, input, records, head, end } = row;
  return {
    runId,
    input,
    records: await store.records(runId, 0),
    claimed: { records, head },
    ...(parentId === undefined ? {} : { parentId }),
    ...(end === undefined ? {} : { end }),
  };
}
