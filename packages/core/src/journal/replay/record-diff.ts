import { type Json, type JsonObject, parseJson } from "../../base/json.ts";
import type { EventDraft, SluiceEvent } from "../events.ts";
import { readEvents, writeEvents } from "../record/hash-chain.ts";
import type { JournalRecord } from "../seam.ts";
import { type Difference, firstDifference } from "./json-diff.ts";

/** What of a record is not what it was. */
export type DifferentPart =
  /** The program went another way: another step, or none. */
  | "step"
  /** What a step announces before it begins. */
  | "announced"
  | "value"
  | "event"
  /** What a sibling was given. */
  | "input"
  | "end"
  /** Code threw that had not thrown. */
  | "fault";

/** The first place of a journal that a replay does not come to again. */
export interface RecordDifference extends Difference {
  readonly runId: string;
  /** The record; the last one there is where the replay goes beyond it. */
  readonly seq: number;
  readonly stepId: string;
  readonly part: DifferentPart;
  /** The type of the event that is other. */
  readonly event?: string;
  /** When the record was written, epoch milliseconds: of several siblings that differ, the first counts. */
  readonly at: number;
}

export type Part = Pick<RecordDifference, "part" | "event" | keyof Difference>;

export function differentValue(part: DifferentPart, recorded: string, now: string): Part | undefined {
  if (recorded === now) return undefined;
  const found = firstDifference(read(recorded), read(now));
  return found === undefined ? undefined : { part, ...found };
}

/** Of two lists of events the first that is other, times and what only the machine knew aside. */
export function differentEvents(
  part: "event" | "announced",
  { runId, record }: { readonly runId: string; readonly record: JournalRecord },
  drafts: readonly EventDraft[],
): Part | undefined {
  const recorded = readEvents(runId, record).map(comparable);
  // Written and read like those of a record, so that what is redacted there is redacted here.
  const now = readEvents(runId, { seq: record.seq, events: writeEvents(drafts, 0) }).map(comparable);
  for (let at = 0; at < Math.max(recorded.length, now.length); at += 1) {
    const [was, is] = [recorded[at], now[at]];
    const found = was?.type === is?.type ? firstDifference(was, is) : { path: "$", recorded: was, now: is };
    if (found === undefined) continue;
    const type = was?.type ?? is?.type;
    return { part, ...found, ...(typeof type === "string" ? { event: type } : {}) };
  }
  return undefined;
}

function comparable({ type, executionId, attempt, data }: SluiceEvent): JsonObject {
  return {
    type,
    ...(executionId === undefined ? {} : { executionId }),
    ...(attempt === undefined ? {} : { attempt }),
    data: type === "turn.started" ? withoutWorld(data) : data,
  };
}

/** How long the run had worked is a time, and which model answers is the session's to say. */
function withoutWorld({ elapsedMs: _elapsed, model: _model, ...data }: JsonObject): JsonObject {
  return data;
}

function read(text: string): Json | undefined {
  const parsed = parseJson(text);
  return parsed.ok ? parsed.value : undefined;
}
