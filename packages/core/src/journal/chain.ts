import { hash } from "node:crypto";
import { SluiceError } from "../base/errors.ts";
import { type JsonObject, parseJson } from "../base/json.ts";
import type { EventDraft, EventType, SluiceEvent } from "./events.ts";
import { redactedJson } from "./redact.ts";
import type { JournalRecord } from "./seam.ts";

/** What the first record of every chain is chained to. */
export const GENESIS = "sluice-journal-1";

export type UnhashedRecord = Omit<JournalRecord, "hash">;

/** The record's hash: SHA-256 over length-prefixed fields in fixed order, so that no two records read alike. */
export function hashRecord(previous: string, runId: string, record: UnhashedRecord): string {
  const value = record.value === "" ? "" : hash("sha256", record.value);
  const fields = [
    previous,
    runId,
    String(record.seq),
    String(record.ordinal),
    record.stepId,
    record.phase,
    record.incarnation,
    value,
    record.events,
  ];
  let text = "";
  for (const field of fields) text += `${field.length}:${field}`;
  return hash("sha256", text);
}

/** The events of a record as the JSON text that is hashed: secrets redacted, written in fixed order, never re-serialised. */
export function writeEvents(drafts: readonly EventDraft[], at: number): string {
  if (drafts.length === 0) return "[]";
  let text = "[";
  for (const { type, executionId, attempt, data } of drafts) {
    if (text.length > 1) text += ",";
    // Each part is JSON of its own, whatever a program put there: a record must stay readable.
    text += `{"at":${JSON.stringify(at)},"type":${JSON.stringify(type)}`;
    if (executionId !== undefined) text += `,"executionId":${JSON.stringify(executionId)}`;
    if (attempt !== undefined) text += `,"attempt":${JSON.stringify(attempt)}`;
    text += `,"data":${OWN_WORDS.has(type) ? JSON.stringify(data) : redactedJson(data)}}`;
  }
  return `${text}]`;
}

/** Events that hold only our own words and numbers: looking for secrets in them would cost more than writing them. */
const OWN_WORDS: ReadonlySet<EventType> = new Set<EventType>([
  "stage.init",
  "stage.gate",
  "stage.act",
  "stage.assert",
  "stage.next",
  "turn.started",
  "turn.finished",
  "completion.accepted",
  "grant.consumed",
  "fork.joined",
]);

interface StoredEvent {
  readonly at: number;
  readonly type: EventType;
  readonly executionId?: string;
  readonly attempt?: number;
  readonly data: JsonObject;
}

/** The events of a record, with the ids their place gives them. Throws `journal_damaged` for what was never written. */
export function readEvents(runId: string, record: JournalRecord): readonly SluiceEvent[] {
  if (record.events === "[]") return [];
  const read = parseJson(record.events);
  if (!read.ok || !Array.isArray(read.value)) {
    const message = `the events of record ${record.seq} of run ${runId} cannot be read; verify the journal`;
    throw new SluiceError("Host", "journal_damaged", message, { detail: { runId, seq: record.seq } });
  }
  const stored: readonly StoredEvent[] = read.value;
  return stored.map((event, index) => ({ id: `${runId}/${record.seq}/${index}`, runId, ...event }));
}
