import type { Clock } from "../../base/clock.ts";
import { isSluiceError } from "../../base/errors.ts";
import type { EventDraft } from "../events.ts";
import { appendRecord, lifecycleRecord, type RunPosition } from "../record.ts";
import type { OpenRequest, RunEnd, SiblingEnd } from "../seam.ts";
import { LIFECYCLE_STEP } from "../step-id.ts";
import type { JournalStore, RunRow } from "../store/journal-store.ts";
import { loadForResume } from "./recorded-steps.ts";

/** Who cancelled a run, when and why. */
export type CancelRequest = NonNullable<RunRow["cancel"]>;

export interface OrphanCancellation {
  readonly store: JournalStore;
  readonly clock: Clock;
  readonly rootId: string;
  /** No process executes the run, so that what happened since its last record is not known. */
  readonly unattended?: true;
}

/** Ends a run without children as cancelled. None of its code runs; its open requests expire in the same record. */
export async function cancelLeaf(of: OrphanCancellation, at: RunPosition, reason: string): Promise<SiblingEnd> {
  // A run with one record has no requests.
  const requests = at.seq === 1 ? [] : await of.store.requests(of.rootId);
  return await closeOne(of, at, reason, requests);
}

/**
 * Ends a run and its descendants as cancelled, children before parents, so that it can continue after a crash. None of their code
 * runs; open requests expire in the same record.
 */
export async function cancelWithChildren(
  of: OrphanCancellation,
  top: RunPosition,
  reason: string,
): Promise<SiblingEnd> {
  const rows = await of.store.runs(of.rootId);
  const requests = await of.store.requests(of.rootId);
  const below = new Set([top.runId]);
  for (const { runId, parentId } of rows) if (parentId !== undefined && below.has(parentId)) below.add(runId);
  below.delete(top.runId);

  const heads = new Map<string, Record<string, string>>();
  for (const row of rows.toReversed()) {
    const { runId, parentId, records, head, end } = row;
    if (parentId === undefined || !below.has(runId)) continue;
    const at: RunPosition = { ...top, runId, seq: records, head };
    const last = end === undefined ? await closeOne(of, at, reason, requests, heads.get(runId)) : { head };
    const siblings = heads.get(parentId) ?? {};
    siblings[runId] = last.head;
    heads.set(parentId, siblings);
  }
  return await closeOne(of, top, reason, requests, heads.get(top.runId));
}

/**
 * Carries out a requested cancel of a run without an owner. Undefined if another process claimed it meanwhile, which then sees the
 * request. Throws Host `journal_damaged` instead of adding to a changed journal.
 */
export async function cancelOrphan(
  of: OrphanCancellation & { readonly incarnation: () => string },
): Promise<RunEnd | undefined> {
  const { store, rootId, incarnation } = of;
  let epoch: number;
  try {
    epoch = await store.claim(rootId);
  } catch (thrown) {
    if (isSluiceError(thrown, "run_owned")) return undefined;
    throw thrown;
  }
  try {
    // Read after the claim, when no other owner can change it.
    const row = await store.run(rootId);
    if (row === undefined || row.cancel === undefined || row.end !== undefined) return row?.end;
    const { seq, head } = await loadForResume(store, row);
    return await cancelTree(of, { runId: rootId, epoch, incarnation: incarnation(), seq, head }, row.cancel);
  } finally {
    await store.release(rootId);
  }
}

/** Ends a whole tree that this host owns and does not run. */
export async function cancelTree(of: OrphanCancellation, root: RunPosition, request: CancelRequest): Promise<RunEnd> {
  await recordCancel(of, root, request);
  const { status, value } = await cancelWithChildren({ ...of, unattended: true }, root, request.reason);
  return { status, value };
}

async function closeOne(
  { store, clock, unattended }: OrphanCancellation,
  at: RunPosition,
  reason: string,
  requests: readonly OpenRequest[],
  children: Readonly<Record<string, string>> = {},
): Promise<SiblingEnd> {
  const own = requests.filter((request) => request.runId === at.runId);
  const expired: EventDraft[] = own.map(({ requestId, kind }) => ({
    type: kind === "grantStageTool" ? "grant.expired" : "request.expired",
    data: { requestId, cause: "cancelled" },
  }));
  const end: RunEnd = { status: "cancelled", value: { reason, children } };
  // Also in the event, so that an export without values is still bound to the children's journals.
  const below = Object.entries(children).map(([run, head]) => ({ run, head }));
  const data = {
    status: "cancelled",
    reason,
    ...(unattended === undefined ? {} : { unattended }),
    ...(below.length === 0 ? {} : { children: below }),
  };
  const events: EventDraft[] = [...expired, { type: "run.finished", data }];
  const record = lifecycleRecord(LIFECYCLE_STEP.closed, events, JSON.stringify(end));
  await appendRecord(store, at, { ...record, end }, clock);
  return { ...end, records: at.seq, head: at.head };
}

/** Records a cancel request in the run's own journal. */
export async function recordCancel(
  of: Omit<OrphanCancellation, "rootId">,
  at: RunPosition,
  request: CancelRequest,
): Promise<void> {
  const { reason, by, at: requestedAt } = request;
  const value = JSON.stringify({ reason, by, at: requestedAt });
  await appendRecord(of.store, at, lifecycleRecord(LIFECYCLE_STEP.cancel, [], value), of.clock);
}
