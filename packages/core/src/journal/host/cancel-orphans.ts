import type { Clock } from "../../base/clock.ts";
import { isSluiceError } from "../../base/errors.ts";
import type { EventDraft } from "../events.ts";
import { appendRecord, type RunPosition } from "../record/append.ts";
import type { OpenRequest, RunEnd, SiblingEnd } from "../seam.ts";
import { LIFECYCLE_STEP, NO_ORDINAL } from "../step-id.ts";
import type { JournalStore, RunRow } from "../store/journal-store.ts";
import { loadForResume } from "./recorded-steps.ts";

/** Who wants a run's end, when and why. */
export type CancelRequest = NonNullable<RunRow["cancel"]>;

/** Where a tree of runs is closed. */
export interface OrphanCancellation {
  readonly store: JournalStore;
  readonly clock: Clock;
  readonly rootId: string;
}
/** The same for a tree that nobody owns: closing it is a stay of its own. */
export interface OwnershipClaim extends OrphanCancellation {
  readonly incarnation: () => string;
}

/** Finishes a run that has nothing below it as cancelled. None of its code runs; its open requests expire in the same record. */
export async function cancelLeaf(of: OrphanCancellation, at: RunPosition, reason: string): Promise<SiblingEnd> {
  // A run of one record has asked for nothing.
  const requests = at.seq === 1 ? [] : await of.store.requests(of.rootId);
  return await closeOne(of, at, reason, requests, {});
}

/**
 * Finishes a run and everything below it as cancelled, children before their parents, so that a crash in between can be
 * taken up again. None of their code runs; open requests expire in the same record.
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

  const children = new Map<string, Record<string, string>>();
  const childrenOf = (runId: string): Record<string, string> => {
    const heads = children.get(runId) ?? {};
    children.set(runId, heads);
    return heads;
  };
  for (const row of rows.toReversed()) {
    const { runId, parentId, records, head, end } = row;
    if (parentId === undefined || !below.has(runId)) continue;
    const at: RunPosition = { ...top, runId, seq: records, head };
    const last = end === undefined ? await closeOne(of, at, reason, requests, childrenOf(runId)) : { head };
    childrenOf(parentId)[runId] = last.head;
  }
  return await closeOne(of, top, reason, requests, childrenOf(top.runId));
}

/**
 * Carries out a cancel that was asked for, with nobody at work on the run. Undefined when somebody else took it up in
 * between: they see the request. Throws `journal_damaged` instead of adding to a journal that is not the one written.
 */
export async function cancelOrphan(of: OwnershipClaim): Promise<RunEnd | undefined> {
  const { store, rootId, incarnation } = of;
  let epoch: number;
  try {
    epoch = await store.claim(rootId);
  } catch (thrown) {
    if (isSluiceError(thrown, "run_owned")) return undefined;
    throw thrown;
  }
  try {
    // As it stands now that nobody else can change it.
    const row = await store.run(rootId);
    if (row === undefined || row.cancel === undefined || row.end !== undefined) return row?.end;
    const { seq, head } = await loadForResume(store, row);
    return await cancelTree(of, { runId: rootId, epoch, incarnation: incarnation(), seq, head }, row.cancel);
  } finally {
    await store.release(rootId);
  }
}

/** Ends a whole tree that is owned here and at work nowhere, on somebody's request. */
export async function cancelTree(of: OrphanCancellation, root: RunPosition, request: CancelRequest): Promise<RunEnd> {
  await recordCancel(of, root, request);
  const { status, value } = await cancelWithChildren(of, root, request.reason);
  return { status, value };
}

async function closeOne(
  { store, clock }: OrphanCancellation,
  at: RunPosition,
  reason: string,
  requests: readonly OpenRequest[],
  children: Readonly<Record<string, string>>,
): Promise<SiblingEnd> {
  const own = requests.filter((request) => request.runId === at.runId);
  const expired: EventDraft[] = own.map(({ requestId, kind }) => ({
    type: kind === "grantStageTool" ? "grant.expired" : "request.expired",
    data: { requestId, cause: "cancelled" },
  }));
  const end: RunEnd = { status: "cancelled", value: { reason, children } };
  // In the event too, so that an export, which leaves values out, is still bound to the journals below.
  const below = Object.entries(children).map(([run, head]) => ({ run, head }));
  const data = { status: "cancelled", reason, ...(below.length === 0 ? {} : { children: below }) };
  const events: EventDraft[] = [...expired, { type: "run.finished", data }];
  const record = { ordinal: NO_ORDINAL, stepId: LIFECYCLE_STEP.closed, phase: "lifecycle" as const, events };
  await appendRecord(store, at, { ...record, value: JSON.stringify(end), end }, clock);
  return { ...end, records: at.seq, head: at.head };
}

/** Copies who asked for a run's end, when and why, into the run's own journal. */
export async function recordCancel(
  of: Omit<OrphanCancellation, "rootId">,
  at: RunPosition,
  request: CancelRequest,
): Promise<void> {
  const { reason, by, at: askedAt } = request;
  const value = JSON.stringify({ reason, by, at: askedAt });
  const record = { ordinal: NO_ORDINAL, stepId: LIFECYCLE_STEP.cancel, phase: "lifecycle" as const, value, events: [] };
  await appendRecord(of.store, at, record, of.clock);
}
