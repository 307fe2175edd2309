import type { Clock } from "../../base/clock.ts";
import { SluiceError } from "../../base/errors.ts";
import { field, type Json, textField } from "../../base/json.ts";
import type { SluiceEvent } from "../events.ts";
import type { Changes } from "../host/store-changes.ts";
import { readEvents } from "../record.ts";
import type {
  EventQuery,
  ExecutionFault,
  JournalRecord,
  OpenRequest,
  RunJournal,
  RunSummary,
  TreeRun,
} from "../seam.ts";
import { isLifecycle, LIFECYCLE_STEP } from "../step-id.ts";
import { TreeReader } from "../tree-order.ts";
import type { JournalStore, RunRow } from "./journal-store.ts";

export function unknownRun(runId: string): SluiceError {
  return new SluiceError("Session", "run_unknown", `there is no run ${runId} in this store`);
}

/** Whether a run is `top` or one of its descendants. */
function isWithin(runId: string, top: string): boolean {
  return runId === top || runId.startsWith(`${top}/`);
}

/** A run and its descendants, in order of creation; empty if there is no such run. */
async function rowsOfTree(store: JournalStore, runId: string): Promise<readonly RunRow[]> {
  const tree = await store.runs(runId);
  if (tree.length > 0) return tree;
  const row = await store.run(runId);
  const rows = row === undefined ? [] : await store.runs(row.rootId);
  return rows.filter((each) => isWithin(each.runId, runId));
}

/** Open requests of one run and its descendants or of all runs, oldest first. */
export async function openRequests(store: JournalStore, runId: string | undefined): Promise<readonly OpenRequest[]> {
  if (runId === undefined) return await unanswered(store);
  const row = await store.run(runId);
  if (row === undefined) return [];
  return (await unanswered(store, row.rootId)).filter((request) => isWithin(request.runId, runId));
}

/** Open requests without an answer, even one that its run has not read. */
async function unanswered(store: JournalStore, rootId?: string): Promise<readonly OpenRequest[]> {
  const stored = await store.requests(rootId);
  return stored.flatMap(({ answered, ...request }) => (answered ? [] : [request]));
}

export async function getRun(store: JournalStore, runId: string): Promise<RunSummary | undefined> {
  const row = await store.run(runId);
  return row === undefined ? undefined : await summaryOf(store, row);
}

export async function listRuns(store: JournalStore, limit?: number): Promise<readonly RunSummary[]> {
  const rows = await store.runs(undefined, limit);
  const listed: RunSummary[] = [];
  for (const row of rows) listed.push(await summaryOf(store, row));
  return listed;
}

/** Reads more than the row only of suspended runs, which are few of a long list. */
async function summaryOf(store: JournalStore, row: RunRow): Promise<RunSummary> {
  if (row.end !== undefined || row.owner?.live === true) return summarise(row, [], []);
  return summarise(row, await unanswered(store, row.rootId), await faultsOf(store, row));
}

/** What a run was suspended with, if that is the last that happened to it. */
async function faultsOf(store: JournalStore, { runId, records }: RunRow): Promise<readonly ExecutionFault[]> {
  const [last] = await store.records(runId, Math.max(0, records - 1), 1);
  if (last === undefined || last.stepId !== LIFECYCLE_STEP.suspend || !isLifecycle(last)) return [];
  const faults = readEvents(runId, last).flatMap(({ data }) => (Array.isArray(data.faults) ? data.faults : []));
  return faults.filter(isFault);
}

function isFault(fault: Json): fault is ExecutionFault {
  const texts = ["runId", "executionId", "code", "message"].map((key) => textField(fault, key));
  const retryAt = field(fault, "retryAt");
  const isTimed = retryAt === undefined || typeof retryAt === "number";
  return !texts.includes(undefined) && isTimed && field(fault, "reason") === "provider";
}

/** `requests` are the unanswered ones of the run's tree. */
function summarise(row: RunRow, requests: readonly OpenRequest[], faults: readonly ExecutionFault[]): RunSummary {
  const { runId, parentId, createdAt, input, records, head, owner, end, wakeAt } = row;
  const sleeps = end === undefined && wakeAt !== undefined && wakeAt > 0;
  const base = {
    ...{ runId, createdAt, input, records, head },
    ...(parentId === undefined ? {} : { parentId }),
    ...(sleeps ? { wakeAt } : {}),
  };
  if (end !== undefined) return { ...base, status: end.status, end };
  if (owner?.live === true) return { ...base, status: "running", owner: owner.label };
  const waits = requests.some((request) => isWithin(request.runId, runId));
  const resting = faults[0]?.reason ?? (sleeps ? "sleeping" : "interrupted");
  const because = faults.length === 0 ? {} : { faults };
  return { ...base, status: "suspended", suspended: waits ? "waiting" : resting, ...because };
}

export async function readRecords(
  store: JournalStore,
  runId: string,
  from: number,
  limit?: number,
): Promise<readonly JournalRecord[]> {
  const most = limit === undefined ? undefined : Math.max(0, Math.floor(limit));
  return await store.records(runId, from > 0 ? Math.ceil(from) : 0, most);
}

/** How often to read a running run again until it did not change in between. */
const READINGS = 5;

/** How many records a run and its descendants have, at one moment. */
export async function readTree(store: JournalStore, runId: string): Promise<readonly TreeRun[]> {
  return (await rowsOfTree(store, runId)).map(({ runId, parentId, records }) => ({ runId, parentId, records }));
}

/** A consistent snapshot of the journals of a run and its descendants. */
export async function readJournal(store: JournalStore, runId: string): Promise<readonly RunJournal[]> {
  let rows = await rowsOfTree(store, runId);
  for (let readings = 1; ; readings += 1) {
    const journals: RunJournal[] = [];
    for (const row of rows) journals.push(await journalOf(store, row));
    // A run that ended does not change; if it did, the audit must see it.
    if (rows[0]?.end !== undefined) return journals;
    const after = await rowsOfTree(store, runId);
    const same = after.length === rows.length && after.every(({ head }, index) => head === rows[index]?.head);
    if (same) return journals;
    // It records faster than it is read: the rows are of one moment, and nothing but what came later follows what they count.
    if (readings === READINGS)
      return journals.map((journal, index) => ({
        ...journal,
        records: journal.records.slice(0, rows[index]?.records),
      }));
    rows = after;
  }
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

/** How many times the duration of a read to wait before the next one, since reading a tree costs time per run. */
const REST = 9;

/** The events of a run; with `follow`, as they are committed until the run ends. */
export async function* followEvents(
  { store, clock, changes }: { readonly store: JournalStore; readonly clock: Clock; readonly changes: Changes },
  runId: string,
  { after, follow = false, children = false, signal }: EventQuery,
): AsyncGenerator<SluiceEvent, void, undefined> {
  const from = after === undefined ? undefined : parseEventId(after);
  const reader = new TreeReader((of, next, limit) => store.records(of, next, limit), children ? undefined : from);
  const waiter = follow ? changes.waiter(signal) : undefined;
  try {
    for (;;) {
      const changed = waiter?.next();
      // After an abort it still reads what is committed, which may include the run's end.
      const last = !follow || signal?.aborted === true;
      const startedAt = clock.now();
      const tree = children
        ? await rowsOfTree(store, runId)
        : [await store.run(runId)].filter((row) => row !== undefined);
      const [root] = tree;
      if (root === undefined) throw unknownRun(runId);
      const tookMs = clock.now() - startedAt;
      for await (const { runId: of, record } of reader.read(tree)) {
        const events = readEvents(of, record);
        if (from === undefined || of !== from.runId || record.seq > from.seq) yield* events;
        else if (record.seq === from.seq) yield* events.slice(from.index + 1);
      }
      if (last || root.end !== undefined) return;
      await changed;
      if (tookMs > 0) await rest(clock, tookMs * REST, signal);
    }
  } finally {
    waiter?.close();
  }
}

async function rest(clock: Clock, ms: number, signal: AbortSignal | undefined): Promise<void> {
  await new Promise<void>((resolve) => {
    const end = (): void => {
      disarm();
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const disarm = clock.after(ms, end);
    signal?.addEventListener("abort", end, { once: true });
    if (signal?.aborted === true) end();
  });
}

function parseEventId(id: string): { readonly runId: string; readonly seq: number; readonly index: number } {
  const match = /^(.*)\/(\d+)\/(\d+)$/.exec(id);
  if (match === null) {
    const message = `${id} is not an event id; they read <run>/<record>/<index>`;
    throw new SluiceError("Validation", "event_id_invalid", message);
  }
  const [, runId = "", seq = "", index = ""] = match;
  return { runId, seq: Number(seq), index: Number(index) };
}
