import type { Clock } from "../../base/clock.ts";
import { SluiceError } from "../../base/errors.ts";
import type { SluiceEvent } from "../events.ts";
import { readEvents } from "../record/hash-chain.ts";
import type { EventQuery } from "../seam.ts";
import type { JournalStore, RunRow } from "../store/journal-store.ts";
import { rowsWithin, unknownRun } from "../store/read-runs.ts";
import type { Changes } from "./store-changes.ts";

/** Records that are read at once: who wants the first few events need not wait for a long run to be read. */
const PAGE = 200;
/** A look over a tree costs as much as it has runs: after one that took a while, this many times as long is waited. */
const REST = 9;

/** The events of a run as they are committed; with `follow` until the run has ended. */
export async function* followEvents(
  { store, clock, changes }: { readonly store: JournalStore; readonly clock: Clock; readonly changes: Changes },
  runId: string,
  { after, follow = false, children = false, signal }: EventQuery,
): AsyncGenerator<SluiceEvent, void, undefined> {
  const from = after === undefined ? undefined : parseEventId(after);
  const seen = new Map<string, number>(from === undefined ? [] : [[from.runId, from.seq]]);
  let dirty = false;
  let wake: (() => void) | undefined;
  const nudge = (): void => {
    dirty = true;
    wake?.();
  };
  const unwatch = follow ? changes.await(nudge) : undefined;
  signal?.addEventListener("abort", nudge, { once: true });
  try {
    for (;;) {
      dirty = false;
      // Told to stop, it still reads what is there by now: the end of a run is the last thing its reader wants to miss.
      const last = !follow || signal?.aborted === true;
      const startedAt = clock.now();
      const rows = children ? await rowsWithin(store, runId) : await oneRow(store, runId);
      const root = rows.find((row) => row.runId === runId);
      if (root === undefined) throw unknownRun(runId);
      const tookMs = clock.now() - startedAt;
      for (const row of rows) {
        for (let next = seen.get(row.runId) ?? 0; next < row.records; ) {
          const page = await store.records(row.runId, next, PAGE);
          if (page.length === 0) break;
          for (const record of page) {
            next = record.seq + 1;
            seen.set(row.runId, next);
            const events = readEvents(row.runId, record);
            const known = from?.runId === row.runId && from.seq === record.seq ? from.index + 1 : 0;
            yield* known === 0 ? events : events.slice(known);
          }
        }
      }
      if (last || root.end !== undefined) return;
      await new Promise<void>((resolve) => {
        wake = resolve;
        if (dirty) resolve();
      });
      wake = undefined;
      if (tookMs > 0) await rest(clock, tookMs * REST, signal);
    }
  } finally {
    unwatch?.();
    signal?.removeEventListener("abort", nudge);
  }
}

async function oneRow(store: JournalStore, runId: string): Promise<readonly RunRow[]> {
  const row = await store.run(runId);
  return row === undefined ? [] : [row];
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

interface EventPlace {
  readonly runId: string;
  readonly seq: number;
  readonly index: number;
}

function parseEventId(id: string): EventPlace {
  const match = /^(.*)\/(\d+)\/(\d+)$/.exec(id);
  if (match === null) {
    throw new SluiceError(
      "Validation",
      "event_id_invalid",
      `${id} is not an event id; they read <run>/<record>/<index>`,
    );
  }
  const [, runId = "", seq = "", index = ""] = match;
  return { runId, seq: Number(seq), index: Number(index) };
}
