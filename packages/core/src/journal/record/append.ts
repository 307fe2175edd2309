import { randomBytes } from "node:crypto";
import type { Clock } from "../../base/clock.ts";
import { messageOf, SluiceError } from "../../base/errors.ts";
import { isJson, isJsonObject, type Json, parseStoredJson } from "../../base/json.ts";
import type { EventDraft } from "../events.ts";
import type { JournalRecord, OpenRequest, RecordPhase, RequestKind, RunEnd } from "../seam.ts";
import { NO_ORDINAL } from "../step-id.ts";
import type { Commit, JournalStore } from "../store/journal-store.ts";
import { GENESIS, hashRecord, writeEvents } from "./hash-chain.ts";

export interface RecordDraft {
  readonly ordinal: number;
  readonly stepId: string;
  readonly phase: RecordPhase;
  readonly value: string;
  readonly events: readonly EventDraft[];
  readonly end?: RunEnd;
}

/** A record of `LIFECYCLE_STEP`. */
export function lifecycleRecord(
  stepId: string,
  events: readonly EventDraft[],
  value = "",
): Pick<RecordDraft, "ordinal" | "stepId" | "phase" | "value" | "events"> {
  return { ordinal: NO_ORDINAL, stepId, phase: "lifecycle", value, events };
}

/** The end of one run's journal: the next seq, and the hash of the last record. */
export interface RunPosition {
  readonly runId: string;
  readonly epoch: number;
  readonly incarnation: string;
  seq: number;
  head: string;
}

type Draft = Omit<Commit, "runId" | "epoch">;

/** Chains a record and derives the requests that it opens and closes. */
export function draftCommit(at: Omit<RunPosition, "epoch">, draft: RecordDraft, clock: Clock): Draft {
  const now = clock.now();
  const { ordinal, stepId, phase, value } = draft;
  const { seq, incarnation } = at;
  const unhashed = { seq, ordinal, stepId, phase, incarnation, value, events: writeEvents(draft.events, now) };
  const { events } = unhashed;
  const hash = hashRecord(at.head, at.runId, unhashed);
  // Field by field, since a spread object takes half as much memory again.
  const record: JournalRecord = { seq, ordinal, stepId, phase, incarnation, value, events, hash };
  const hasRequests = draft.events.some(aboutRequests);
  const commit: Draft = {
    record,
    opened: hasRequests ? openedBy(at.runId, draft.events, now) : NONE,
    closed: hasRequests ? closedBy(draft.events) : NONE,
  };
  return draft.end === undefined ? commit : { ...commit, end: draft.end };
}

/** Commits the next record of a run. Throws a Host error if it cannot be written; then nothing of it is kept. */
export function appendRecord(
  store: JournalStore,
  at: RunPosition,
  draft: RecordDraft,
  clock: Clock,
): Promise<void> | void {
  const commit = draftCommit(at, draft, clock);
  const written = store.append({ ...commit, runId: at.runId, epoch: at.epoch });
  const onWritten = (): void => {
    at.seq += 1;
    at.head = commit.record.hash;
  };
  // A synchronous store needs no await.
  if (written === undefined) onWritten();
  else return written.then(onWritten);
}

/** Makes globally unique names, one each time this process starts or resumes a run. */
export function createIncarnations(): () => string {
  const process = randomBytes(6).toString("hex");
  let count = 0;
  return () => {
    count += 1;
    // Array.join, since V8 would retain a template as a cons-string in every record.
    return [process, count.toString(36)].join("-");
  };
}

/** The position before a journal's first record. */
export function genesisPosition(runId: string, incarnation: string): Omit<RunPosition, "epoch"> {
  return { runId, incarnation, seq: 0, head: GENESIS };
}

const REQUEST_KINDS: ReadonlySet<string> = new Set<RequestKind>([
  "grantStageTool",
  "approveTransition",
  "askUser",
  "humanState",
]);

function isRequestKind(kind: unknown): kind is RequestKind {
  return typeof kind === "string" && REQUEST_KINDS.has(kind);
}

const NONE: readonly never[] = [];

/**
 * A request's body is not redacted, unlike its event's: an answer is about exactly this body, and text that looks like a secret
 * must not hide what would run.
 */
function openedBy(runId: string, events: readonly EventDraft[], openedAt: number): readonly OpenRequest[] {
  const opened: OpenRequest[] = [];
  for (const { type, data } of events) {
    if (!OPEN_KINDS.has(type)) continue;
    const { requestId, kind, digest, body } = data;
    if (typeof requestId !== "string" || typeof digest !== "string" || !isRequestKind(kind)) continue;
    opened.push({ requestId, runId, kind, digest, body: isJsonObject(body) ? body : {}, openedAt });
  }
  return opened;
}

/** Event types that open and close requests. */
export const OPEN_KINDS: ReadonlySet<string> = new Set(["grant.requested", "request.opened"]);
export const CLOSE_KINDS: ReadonlySet<string> = new Set([
  "grant.answered",
  "grant.expired",
  "request.answered",
  "request.expired",
]);

function aboutRequests({ type }: EventDraft): boolean {
  return OPEN_KINDS.has(type) || CLOSE_KINDS.has(type);
}

function closedBy(events: readonly EventDraft[]): readonly string[] {
  const closed: string[] = [];
  for (const { type, data } of events)
    if (CLOSE_KINDS.has(type) && typeof data.requestId === "string") closed.push(data.requestId);
  return closed;
}

/** A value as recorded, and as the program sees it now and on resume. */
export interface RecordedValue<T> {
  readonly text: string;
  readonly value: T;
}

/** Applies what JSON does to a value (a date becomes a text, an undefined member disappears) before the program sees it. */
export function toRecordedValue<T>(value: T, what: string): RecordedValue<T> {
  const text = jsonText(value, what);
  // Plain JSON needs no second parse.
  return { text, value: isJson(value) ? value : JSON.parse(text) };
}

/** A recorded value, checked against its step's type. Throws Host `journal_damaged` for any other. */
export function decodeValue<T extends Json>(text: string, isKind: (value: Json) => value is T, step: string): T {
  const read = parseStoredJson(text);
  if (read.ok && isKind(read.value)) return read.value;
  throw new SluiceError(
    "Host",
    "journal_damaged",
    `the record of a step ${step} holds another value; verify the journal`,
  );
}

/** The JSON text of a value. Throws Validation `not_json` for a value that has none. */
export function jsonText(value: unknown, what: string): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (cause) {
    throw new SluiceError("Validation", "not_json", `${what} is not JSON: ${messageOf(cause)}`, { cause });
  }
  if (text === undefined) {
    const fix = "use null for nothing";
    throw new SluiceError("Validation", "not_json", `${what} is ${typeof value}, which a journal cannot hold; ${fix}`);
  }
  return text;
}
