import type { Clock } from "../base/clock.ts";
import type { EventDraft } from "./events.ts";
import type { RunEnd, Settled } from "./seam.ts";
import type { JournalStore } from "./store.ts";
import { appendRecord, type RunPosition } from "./writer.ts";

/** Finishes one run as cancelled in its journal; none of its code runs. Its open requests expire in the same record. */
export async function cancelRun(
  store: JournalStore,
  clock: Clock,
  at: RunPosition,
  reason: string,
  children: Readonly<Record<string, string>> = {},
): Promise<Settled> {
  const own = (await store.requests(rootOf(at.runId))).filter((request) => request.runId === at.runId);
  const expired: EventDraft[] = own.map(({ requestId, kind }) => ({
    type: kind === "grantStageTool" ? "grant.expired" : "request.expired",
    data: { requestId, cause: "cancelled" },
  }));
  const end: RunEnd = { status: "cancelled", value: { reason, children } };
  const events: EventDraft[] = [...expired, { type: "run.finished", data: { status: "cancelled", reason } }];
  await appendRecord(store, at, { ordinal: -1, stepId: "end", phase: "life", value: JSON.stringify(end), events, end }, clock);
  return { ...end, records: at.seq, head: at.head };
}

/** Finishes a whole tree as cancelled, children before their parents, so that a crash in between can be taken up again. */
export async function cancelTree(store: JournalStore, clock: Clock, root: RunPosition, reason: string): Promise<RunEnd> {
  const heads: Record<string, string> = {};
  const rows = await store.runs(root.runId);
  for (const row of [...rows].reverse()) {
    if (row.runId === root.runId) continue;
    if (row.end !== undefined) {
      heads[row.runId] = row.head;
      continue;
    }
    const at: RunPosition = { ...root, runId: row.runId, seq: row.records, head: row.head };
    heads[row.runId] = (await cancelRun(store, clock, at, reason)).head;
  }
  const { status, value } = await cancelRun(store, clock, root, reason, heads);
  return { status, value };
}

function rootOf(runId: string): string {
  const slash = runId.indexOf("/");
  return slash === -1 ? runId : runId.slice(0, slash);
}
