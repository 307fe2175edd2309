import { hash, randomBytes } from "node:crypto";
import type { Clock } from "../base/clock.ts";
import { messageOf, SluiceError } from "../base/errors.ts";
import {
  field,
  isJson,
  isJsonObject,
  isObject,
  type Json,
  type JsonObject,
  numberField,
  parseStoredJson,
  textField,
} from "../base/json.ts";
import { EVENT_TYPES, type EventDraft, type EventType, type SluiceEvent } from "./events.ts";
import { redactedParts } from "./redaction.ts";
import type { Interruption, JournalRecord, OpenRequest, RecordPhase, RequestKind, RunEnd, StepCost } from "./seam.ts";
import { NO_ORDINAL } from "./step-id.ts";
import type { Commit, JournalStore } from "./store/journal-store.ts";

export interface RecordDraft {
  readonly ordinal: number;
  readonly stepId: string;
  readonly phase: RecordPhase;
  readonly value: string;
  readonly events: readonly EventDraft[];
  readonly cost?: StepCost | undefined;
  readonly end?: RunEnd;
  /** See `Commit`. */
  readonly wakeAt?: number | null | undefined;
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
  const unhashed = {
    seq,
    ordinal,
    stepId,
    phase,
    incarnation,
    value,
    events: writeEvents(draft.events, now, draft.cost),
  };
  const { events } = unhashed;
  const hash = hashDigested(at.head, at.runId, unhashed, digestOf(value));
  // Field by field, since a spread object takes half as much memory again.
  const record: JournalRecord = { seq, ordinal, stepId, phase, incarnation, value, events, hash };
  const commit: Draft = { record, ...requestsIn(at.runId, draft.events, now) };
  if (draft.end !== undefined) return { ...commit, end: draft.end };
  return draft.wakeAt === undefined ? commit : { ...commit, wakeAt: draft.wakeAt };
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
  // A synchronous store needs no await: the position never lags behind what is written.
  if (written === undefined) onWritten();
  else return Promise.resolve(written).then(onWritten);
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

/**
 * The requests that events open and close. A request's body is not redacted, unlike its event's: an answer is about exactly this
 * body, and text that looks like a secret must not hide what would run.
 */
function requestsIn(runId: string, events: readonly EventDraft[], openedAt: number): Pick<Commit, "opened" | "closed"> {
  const opened: OpenRequest[] = [];
  const closed: string[] = [];
  for (const { type, data } of events) {
    if (!OPEN_KINDS.has(type) && !CLOSE_KINDS.has(type)) continue;
    const { requestId, kind, digest, body } = data;
    if (typeof requestId !== "string") continue;
    if (CLOSE_KINDS.has(type)) closed.push(requestId);
    else if (typeof digest === "string" && isRequestKind(kind)) {
      // One that is opened again is not closed.
      if (closed.includes(requestId)) closed.splice(closed.indexOf(requestId), 1);
      opened.push({ requestId, runId, kind, digest, body: isJsonObject(body) ? body : {}, openedAt });
    }
  }
  return { opened, closed };
}

/** Part of the events of a record that reports an interruption. No text of an event contains it, since its quotes are escaped there. */
export const INTERRUPTION_MARK = '"type":"execution.interrupted"';

/** The interruption by a person that a record reports, if it does. Cheap for every other record. */
export function interruptionIn(runId: string, record: Pick<JournalRecord, "seq" | "events">): Interruption | undefined {
  if (!record.events.includes(INTERRUPTION_MARK)) return undefined;
  const found = readEvents(runId, record).find(({ type }) => type === "execution.interrupted");
  if (found === undefined) return undefined;
  const { data } = found;
  return {
    reason: textField(data, "reason") ?? "",
    by: textField(data, "by") ?? "",
    count: numberField(data, "count") ?? 0,
  };
}

/** Event types that open and close requests. */
export const OPEN_KINDS: ReadonlySet<string> = new Set(["grant.requested", "request.opened"]);
export const CLOSE_KINDS: ReadonlySet<string> = new Set([
  "grant.answered",
  "grant.expired",
  "request.answered",
  "request.expired",
]);

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

/** The previous hash of every chain's first record. */
export const GENESIS = "sluice-journal-1";

export type UnhashedRecord = Omit<JournalRecord, "hash">;

/** The record's hash: SHA-256 over length-prefixed fields in fixed order, so that different records never have the same input. */
export function hashRecord(previous: string, runId: string, record: UnhashedRecord): string {
  return hashDigested(previous, runId, record, digestOf(record.value));
}

/** The same, by the digest of the record's value. */
export function hashDigested(
  previous: string,
  runId: string,
  record: Omit<UnhashedRecord, "value">,
  valueDigest: string,
): string {
  const { stepId, phase, incarnation, events } = record;
  const seq = String(record.seq);
  const ordinal = String(record.ordinal);
  // Written out, since every record is hashed.
  const place = `${previous.length}:${previous}${runId.length}:${runId}${seq.length}:${seq}${ordinal.length}:${ordinal}`;
  const step = `${stepId.length}:${stepId}${phase.length}:${phase}${incarnation.length}:${incarnation}`;
  return hash("sha256", `${place}${step}${valueDigest.length}:${valueDigest}${events.length}:${events}`);
}

/** A value's part in its record's hash: SHA-256 in hex, or empty if there is no value. */
export function digestOf(value: string): string {
  return value === "" ? "" : hash("sha256", value);
}

/**
 * The events of a record as the JSON text that is hashed: redacted, in fixed order, never serialized again. The time is written
 * once; `executionId` and `attempt` only where they differ from the event before, null meaning absent. A cost comes first.
 */
export function writeEvents(drafts: readonly EventDraft[], at: number, cost?: StepCost): string {
  const costText = cost === undefined ? "" : `${COST_START}${amountsText(cost)}}`;
  if (drafts.length === 0) return cost === undefined ? "[]" : `${costText}]`;
  // Array.join, since V8 would retain a cons-string.
  const parts: string[] = [];
  let before = "";
  let lastExecution: string | undefined;
  let lastAttempt: number | undefined;
  for (const { type, executionId, attempt, data } of drafts) {
    const typeText = TYPE_TEXTS.get(type);
    // Unknown to the schemas, so no reader could check it.
    if (typeText === undefined)
      throw new SluiceError("Validation", "event_unknown", `${JSON.stringify(type)} is not an event type`);
    // Each part is serialized by itself, so that no program can make a record unreadable.
    if (parts.length > 0) parts.push('},{"type":', typeText);
    else parts.push(costText === "" ? "[" : `${costText},`, `{"at":${JSON.stringify(at)},"type":`, typeText);
    if (executionId !== lastExecution) parts.push(',"executionId":', JSON.stringify(executionId ?? null));
    if (attempt !== lastAttempt) parts.push(',"attempt":', JSON.stringify(attempt ?? null));
    const [shared, rest] = redactedParts(data);
    if (shared === "") parts.push(',"data":', rest);
    else {
      // Not joined, since the records of all runs that share it keep its text once.
      before = `${before}${parts.splice(0).join("")},"data":${shared}`;
      parts.push(rest);
    }
    lastExecution = executionId;
    lastAttempt = attempt;
  }
  parts.push("}]");
  return before + parts.join("");
}

/** How the events of a record with a cost start. An event never starts with this member. */
const COST_START = '[{"cost":';

const AMOUNTS = [
  "inputTokens",
  "outputTokens",
  "costUsd",
  "unpricedCalls",
  "unmeteredCalls",
  "stateMs",
  "runMs",
] as const satisfies readonly Exclude<keyof StepCost, "aroundMs">[];

/** Writes numbers only, since whatever else an executor returns could hold a secret. */
function amountsText(cost: StepCost): string {
  const known: string[] = [];
  for (const name of AMOUNTS) {
    // Read once, since an executor's object may answer differently the next time.
    const amount = cost[name];
    if (amount !== undefined) known.push(`"${name}":${Number.isFinite(amount) ? amount : null}`);
  }
  const { aroundMs } = cost;
  if (Array.isArray(aroundMs))
    known.push(`"aroundMs":[${Array.from(aroundMs, (ms) => (Number.isFinite(ms) ? ms : null)).join(",")}]`);
  return `{${known.join(",")}}`;
}

/** What a record says its step used or may use; a member that is not a number is NaN. Undefined for a record without a cost. */
export function readCost({ events }: Pick<JournalRecord, "events">): StepCost | undefined {
  if (!events.startsWith(COST_START)) return undefined;
  const stored = readStored(events)?.cost;
  const cost: { -readonly [K in keyof StepCost]: StepCost[K] } = {};
  for (const name of AMOUNTS) {
    // A cost that cannot be read is one of unknown amounts.
    const amount = isJsonObject(stored) ? stored[name] : null;
    if (amount !== undefined) cost[name] = numberOf(amount);
  }
  const aroundMs = field(stored, "aroundMs");
  if (Array.isArray(aroundMs)) cost.aroundMs = aroundMs.map(numberOf);
  return cost;
}

function numberOf(amount: Json): number {
  return typeof amount === "number" ? amount : Number.NaN;
}

/** What `writeEvents` wrote: the cost, if any, and the events. Undefined for a text that was never written. */
function readStored(
  text: string,
): { readonly cost?: Json | undefined; readonly events: readonly unknown[] } | undefined {
  const read = parseStoredJson(text);
  if (!read.ok || !Array.isArray(read.value)) return undefined;
  const [first, ...others]: readonly Json[] = read.value;
  return text.startsWith(COST_START) ? { cost: field(first, "cost"), events: others } : { events: read.value };
}

const TYPE_TEXTS: ReadonlyMap<string, string> = new Map(EVENT_TYPES.map((type) => [type, JSON.stringify(type)]));

interface StoredEvent {
  readonly at?: number;
  readonly type: EventType;
  readonly executionId?: string | null;
  readonly attempt?: number | null;
  readonly data: JsonObject;
}

/** A journal may hold anything. The shape of `data` is checked by the schemas, not here. */
function isStoredEvent(value: unknown): value is StoredEvent {
  if (!isObject(value)) return false;
  const { at, type, executionId, attempt, data } = value;
  return (
    typeof type === "string" &&
    isObject(data) &&
    !Array.isArray(data) &&
    (at === undefined || typeof at === "number") &&
    (executionId === undefined || executionId === null || typeof executionId === "string") &&
    (attempt === undefined || attempt === null || typeof attempt === "number")
  );
}

/** The events of a record, with their ids. Throws Host `journal_damaged` for a text that was never written. */
export function readEvents(runId: string, record: Pick<JournalRecord, "seq" | "events">): readonly SluiceEvent[] {
  if (record.events === "[]") return [];
  const stored = readStored(record.events)?.events;
  if (stored === undefined || !stored.every(isStoredEvent)) {
    const message = `the events of record ${record.seq} of run ${runId} cannot be read; verify the journal`;
    throw new SluiceError("Host", "journal_damaged", message, { detail: { runId, seq: record.seq } });
  }
  const shared: { at: number; executionId: string | null; attempt: number | null } = {
    at: 0,
    executionId: null,
    attempt: null,
  };
  return stored.map(({ at, type, executionId, attempt, data }, index) => {
    shared.at = at ?? shared.at;
    if (executionId !== undefined) shared.executionId = executionId;
    if (attempt !== undefined) shared.attempt = attempt;
    return {
      id: `${runId}/${record.seq}/${index}`,
      runId,
      at: shared.at,
      type,
      ...(shared.executionId === null ? {} : { executionId: shared.executionId }),
      ...(shared.attempt === null ? {} : { attempt: shared.attempt }),
      data,
    };
  });
}
