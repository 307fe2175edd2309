import { field, isJsonObject, type Json, type JsonObject, parseJson } from "../../base/json.ts";
import { parsePlace } from "../../base/source-place.ts";
import type { EventDraft, SluiceEvent } from "../events.ts";
import { readEvents, writeEvents } from "../record.ts";
import type { JournalRecord } from "../seam.ts";

/** The first place where two values differ; undefined stands for a missing value. */
export interface Difference {
  /** `$` is the whole value, `$.a[0]` a part of it. */
  readonly path: string;
  readonly recorded: Json | undefined;
  readonly now: Json | undefined;
}

/** The part of a record that differs. */
export type DifferentPart =
  /** The program took another step, or none. */
  | "step"
  /** The step's open record. */
  | "announced"
  | "value"
  | "event"
  /** A sibling's input. */
  | "input"
  | "end"
  /** Code threw that did not throw when the run was recorded. */
  | "fault";

/** The first difference between a replay and the recorded run. */
export interface RecordDifference extends Difference {
  readonly runId: string;
  /** The record that differs, or the last one if the replay continues beyond it. */
  readonly seq: number;
  readonly stepId: string;
  readonly part: DifferentPart;
  /** The type of the event that differs. */
  readonly event?: string;
  /** When the record was written, in epoch milliseconds. If several siblings differ, the earliest is reported. */
  readonly at: number;
}

export type Part = Pick<RecordDifference, "part" | "event" | keyof Difference>;

export function differentValue(part: DifferentPart, recorded: string, now: string): Part | undefined {
  if (recorded === now) return undefined;
  const found = firstDifference(read(recorded), read(now));
  return found === undefined ? undefined : { part, ...found };
}

/** The first difference between two lists of events, ignoring times and facts about the machine. */
export function differentEvents(
  part: "event" | "announced",
  { runId, record }: { readonly runId: string; readonly record: JournalRecord },
  drafts: readonly EventDraft[],
): Part | undefined {
  const recorded = readEvents(runId, record).map(comparable);
  // Written and read back, so that the new events are redacted like the recorded ones.
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

/** Without times, and without the model, which the session chooses. */
function withoutWorld({ elapsedMs: _elapsed, model: _model, ...data }: JsonObject): JsonObject {
  return data;
}

function read(text: string): Json | undefined {
  const parsed = parseJson(text);
  return parsed.ok ? parsed.value : undefined;
}

/** Lines of code move without a change of what the code does, and older records have no places of failures. */
function isPlaceOf(path: string, ...values: readonly (Json | undefined)[]): boolean {
  if (path.includes(".output")) return false;
  const isOfFailure = /(?:^\$|\.(?:detail|why|next|error|data|rejectedRows\[\d+\]))$/.test(path);
  return isOfFailure && values.every((value) => value === undefined || isPlaceText(value));
}

function isPlaceText(value: Json): boolean {
  return typeof value === "string" && parsePlace(value) !== undefined;
}

/** Compares values regardless of the order of members, in the recorded order. Undefined if they are equal. */
function firstDifference(recorded: Json | undefined, now: Json | undefined, path = "$"): Difference | undefined {
  if (Object.is(recorded, now)) return undefined;
  if (Array.isArray(recorded) && Array.isArray(now)) {
    for (let at = 0; at < Math.max(recorded.length, now.length); at += 1) {
      const found = firstDifference(recorded[at], now[at], `${path}[${at}]`);
      if (found !== undefined) return found;
    }
    return undefined;
  }
  if (isJsonObject(recorded) && isJsonObject(now)) {
    for (const key of new Set([...Object.keys(recorded), ...Object.keys(now)])) {
      const [was, is] = [field(recorded, key), field(now, key)];
      if (key === "at" && isPlaceOf(path, was, is)) continue;
      const found = firstDifference(was, is, `${path}.${key}`);
      if (found !== undefined) return found;
    }
    return undefined;
  }
  return { path, recorded, now };
}
