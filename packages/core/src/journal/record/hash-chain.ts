import { hash } from "node:crypto";
import { SluiceError } from "../../base/errors.ts";
import { isObject, type JsonObject, parseStoredJson } from "../../base/json.ts";
import { EVENT_TYPES, type EventDraft, type EventType, type SluiceEvent } from "../events.ts";
import { dataText } from "../redaction.ts";
import type { JournalRecord } from "../seam.ts";

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
  const { seq, ordinal, stepId, phase, incarnation, events } = record;
  const place = field(previous) + field(runId) + field(String(seq)) + field(String(ordinal));
  return hash("sha256", place + field(stepId) + field(phase) + field(incarnation) + field(valueDigest) + field(events));
}

/** A value's part in its record's hash: SHA-256 in hex, or empty if there is no value. */
export function digestOf(value: string): string {
  return value === "" ? "" : hash("sha256", value);
}

function field(text: string): string {
  return `${text.length}:${text}`;
}

/**
 * The events of a record as the JSON text that is hashed: redacted, in fixed order, never serialized again. The time is written
 * once; `executionId` and `attempt` only where they differ from the event before, null meaning absent.
 */
export function writeEvents(drafts: readonly EventDraft[], at: number): string {
  if (drafts.length === 0) return "[]";
  // Array.join, since V8 would retain a cons-string.
  const parts: string[] = [];
  let lastExecution: string | undefined;
  let lastAttempt: number | undefined;
  for (const { type, executionId, attempt, data } of drafts) {
    // Each part is serialized by itself, so that no program can make a record unreadable.
    parts.push(parts.length === 0 ? `[{"at":${JSON.stringify(at)},"type":` : '},{"type":', typeText(type));
    if (executionId !== lastExecution) parts.push(',"executionId":', JSON.stringify(executionId ?? null));
    if (attempt !== lastAttempt) parts.push(',"attempt":', JSON.stringify(attempt ?? null));
    parts.push(',"data":', dataText(data));
    lastExecution = executionId;
    lastAttempt = attempt;
  }
  parts.push("}]");
  return parts.join("");
}

const TYPE_TEXTS: ReadonlyMap<string, string> = new Map(EVENT_TYPES.map((type) => [type, JSON.stringify(type)]));

/** Rejects unknown types, so that executors cannot write events that readers cannot check. */
function typeText(type: string): string {
  const text = TYPE_TEXTS.get(type);
  if (text !== undefined) return text;
  throw new SluiceError("Validation", "event_unknown", `${JSON.stringify(type)} is not an event type`);
}

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
  const read = parseStoredJson(record.events);
  if (!read.ok || !Array.isArray(read.value) || !read.value.every(isStoredEvent)) {
    const message = `the events of record ${record.seq} of run ${runId} cannot be read; verify the journal`;
    throw new SluiceError("Host", "journal_damaged", message, { detail: { runId, seq: record.seq } });
  }
  const stored = read.value;
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
