import { SluiceError } from "../base/errors.ts";
import { readEvents } from "./chain.ts";
import type { SluiceEvent } from "./events.ts";
import type { EventQuery, RunJournal, RunSummary } from "./seam.ts";
import type { JournalStore, RunRow } from "./store.ts";

export async function summarise(store: JournalStore, row: RunRow): Promise<RunSummary> {
  const live = row.owner?.live === true;
  const base = {
    runId: row.runId,
    createdAt: row.createdAt,
    input: row.input,
    records: row.records,
    head: row.head,
    ...(row.parentId === undefined ? {} : { parentId: row.parentId }),
    ...(row.owner !== undefined && live ? { owner: row.owner.label } : {}),
  };
  if (row.end !== undefined) return { ...base, status: row.end.status, end: row.end };
  if (live) return { ...base, status: "running" };
  const waiting = (await store.requests(row.rootId)).length > 0;
  return { ...base, status: "suspended", suspended: waiting ? "waiting" : "interrupted" };
}

export async function readJournal(store: JournalStore, runId: string): Promise<readonly RunJournal[]> {
  const rows = await store.runs(runId);
  const journals: RunJournal[] = [];
  for (const row of rows) {
    journals.push({
      runId: row.runId,
      records: await store.records(row.runId, 0),
      claimed: { records: row.records, head: row.head },
      ...(row.parentId === undefined ? {} : { parentId: row.parentId }),
      ...(row.end === undefined ? {} : { end: row.end }),
    });
  }
  return journals;
}

/** The events of a run as they are committed; with `follow` until the run has ended. */
export async function* followEvents(
  store: JournalStore,
  watch: (listener: () => void) => () => void,
  runId: string,
  query: EventQuery,
): AsyncGenerator<SluiceEvent, void, undefined> {
  const seen = new Map<string, number>();
  let after = query.after === undefined ? undefined : parseEventId(query.after);
  let wake: (() => void) | undefined;
  let dirty = true;
  const nudge = (): void => {
    dirty = true;
    wake?.();
  };
  const unwatch = query.follow === true ? watch(nudge) : undefined;
  query.signal?.addEventListener("abort", nudge, { once: true });
  try {
    for (;;) {
      dirty = false;
      // Told to stop, it still reads what is there by now: the end of a run is the last thing its reader wants to miss.
      const last = query.signal?.aborted === true;
      const rows = query.children === true ? await store.runs(runId) : [await store.run(runId)].filter((row) => row !== undefined);
      const root = rows.find((row) => row.runId === runId);
      if (root === undefined) throw new SluiceError("Session", "run_unknown", `there is no run ${runId} in this store`);
      for (const row of rows) {
        const from = seen.get(row.runId) ?? 0;
        if (from >= row.records) continue;
        for (const record of await store.records(row.runId, from)) {
          seen.set(row.runId, record.seq + 1);
          for (const event of readEvents(row.runId, record)) {
            if (after === undefined || isAfter(event.id, after)) yield event;
          }
        }
      }
      after = undefined;
      if (query.follow !== true || root.end !== undefined || last) return;
      if (dirty) continue;
      await new Promise<void>((resolve) => {
        wake = resolve;
        if (dirty) resolve();
      });
      wake = undefined;
    }
  } finally {
    unwatch?.();
    query.signal?.removeEventListener("abort", nudge);
  }
}

interface EventPlace {
  readonly runId: string;
  readonly seq: number;
  readonly index: number;
}

function parseEventId(id: string): EventPlace {
  const match = /^(.*)\/(\d+)\/(\d+)$/.exec(id);
  if (match === null) throw new SluiceError("Validation", "event_id_invalid", `${id} is not an event id; they read <run>/<record>/<index>`);
  const [, runId = "", seq = "", index = ""] = match;
  return { runId, seq: Number(seq), index: Number(index) };
}

/** Ids order the events of one run; events of other runs are always shown. */
function isAfter(id: string, place: EventPlace): boolean {
  const at = parseEventId(id);
  if (at.runId !== place.runId) return true;
  return at.seq > place.seq || (at.seq === place.seq && at.index > place.index);
}
