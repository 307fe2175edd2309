import type { Clock } from "../base/clock.ts";
import { GENESIS, hashRecord, writeEvents } from "./chain.ts";
import { isJsonObject } from "../base/json.ts";
import type { EventDraft } from "./events.ts";
import { redactEvents } from "./redact.ts";
import type { JournalRecord, OpenRequest, RecordPhase, RequestKind, RunEnd } from "./seam.ts";
import type { Commit, JournalStore } from "./store.ts";

export interface RecordDraft {
  readonly ordinal: number;
  readonly stepId: string;
  readonly phase: RecordPhase;
  readonly value: string;
  readonly events: readonly EventDraft[];
  readonly end?: RunEnd;
}

/** Where one run's journal stands: the next record and the hash before it. */
export interface RunPosition {
  readonly runId: string;
  readonly epoch: number;
  readonly incarnation: string;
  seq: number;
  head: string;
}

type Draft = Omit<Commit, "runId" | "epoch">;

/** Hashes a record onto the chain and works out which requests it opens and closes. */
export function draftCommit(at: Omit<RunPosition, "epoch">, draft: RecordDraft, clock: Clock): Draft {
  const now = clock.now();
  const events = redactEvents(draft.events);
  const unhashed = {
    seq: at.seq,
    ordinal: draft.ordinal,
    stepId: draft.stepId,
    phase: draft.phase,
    incarnation: at.incarnation,
    value: draft.value,
    events: writeEvents(events, now),
  };
  const record: JournalRecord = { ...unhashed, hash: hashRecord(at.head, at.runId, unhashed) };
  const commit: Draft = { record, opened: openedBy(at.runId, events, now), closed: closedBy(events) };
  return draft.end === undefined ? commit : { ...commit, end: draft.end };
}

/** Commits the next record of a run. Rejects with a Host error when it could not be written; then nothing of it is kept. */
export async function appendRecord(store: JournalStore, at: RunPosition, draft: RecordDraft, clock: Clock): Promise<void> {
  const commit = draftCommit(at, draft, clock);
  const written = store.append({ ...commit, runId: at.runId, epoch: at.epoch });
  if (written !== undefined) await written;
  at.seq += 1;
  at.head = commit.record.hash;
}

export function startOf(runId: string, incarnation: string): Omit<RunPosition, "epoch"> {
  return { runId, incarnation, seq: 0, head: GENESIS };
}

const REQUEST_KINDS: ReadonlySet<string> = new Set<RequestKind>(["grantStageTool", "approveTransition", "askUser", "humanState"]);

function isRequestKind(kind: unknown): kind is RequestKind {
  return typeof kind === "string" && REQUEST_KINDS.has(kind);
}

function openedBy(runId: string, events: readonly EventDraft[], openedAt: number): readonly OpenRequest[] {
  const opened: OpenRequest[] = [];
  for (const { type, data } of events) {
    if (type !== "grant.requested" && type !== "request.opened") continue;
    const { requestId, kind, digest, body } = data;
    if (typeof requestId !== "string" || typeof digest !== "string" || !isRequestKind(kind)) continue;
    opened.push({ requestId, runId, kind, digest, body: isJsonObject(body) ? body : {}, openedAt });
  }
  return opened;
}

const CLOSING: ReadonlySet<string> = new Set(["grant.answered", "grant.expired", "request.answered", "request.expired"]);

function closedBy(events: readonly EventDraft[]): readonly string[] {
  const closed: string[] = [];
  for (const { type, data } of events) if (CLOSING.has(type) && typeof data["requestId"] === "string") closed.push(data["requestId"]);
  return closed;
}
