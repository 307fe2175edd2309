import { hash } from "node:crypto";
import { SluiceError } from "../../base/errors.ts";
import { isObject, type JsonObject, parseStoredJson } from "../../base/json.ts";
import { EVENT_TYPES, type EventDraft, type EventType, type SluiceEvent } from "../events.ts";
import { dataText } from "../redaction.ts";
import type { JournalRecord } from "../seam.ts";

/** What the first record of every chain is chained to. */
export const GENESIS = "sluice-journal-1";

export type UnhashedRecord = Omit<JournalRecord, "hash">;

/** The record's hash: SHA-256 over length-prefixed fields in fixed order, so that no two records read alike. */
export function hashRecord(previous: string, runId: string, record: UnhashedRecord): string {
  return hashDigested(previous, runId, record, digestOf(record.value));
}

/** The same for a record whose value is not at hand, by the value's digest. */
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

/** What stands for a value in its record's hash: SHA-256, hex; empty where there is none. */
export function digestOf(value: string): string {
  return value === "" ? "" : hash("sha256", value);
}

function field(text: string): string {
  return `${text.length}:${text}`;
}

/**
 * The events of a record as the JSON text that is hashed: secrets redacted, written in fixed order, never re-serialised. What an
 * event shares with the one before it (time, execution, attempt) is written once; null stands where there is none any more.
 */
export function writeEvents(drafts: readonly EventDraft[], at: number): string {
  if (drafts.length === 0) return "[]";
  // Joined at the end: a text that grew piece by piece would be kept as its pieces.
  const parts: string[] = [];
  let lastExecution: string | undefined;
  let lastAttempt: number | undefined;
  for (const { type, executionId, attempt, data } of drafts) {
    // Each part is JSON of its own, whatever a program put there: a record must stay readable.
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

/** Readers know these types and no others, so that no executor of somebody's can write what nobody can check. */
function typeText(type: string): string {
  const text = TYPE_TEXTS.get(type);
  if (text !== undefined) return text;
  throw new SluiceError(
    "Validation",
    "event_unknown",
    `${JSON.stringify(type)} is no type of event that a journal keeps`,
  );
}

interface StoredEvent {
  readonly at?: number;
  readonly type: EventType;
  readonly executionId?: string | null;
  readonly attempt?: number | null;
  readonly data: JsonObject;
}

/** What a journal holds may come from anybody; data of another shape than its type says is for the schemas to tell. */
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

/** The events of a record, with the ids their place gives them. Throws `journal_damaged` for what was never written. */
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
