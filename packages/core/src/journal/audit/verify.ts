import { field, isJsonObject, type Json, parseJson, textField } from "../../base/json.ts";
import { digestOf, GENESIS, hashDigested } from "../record.ts";
import type { JournalRecord, RunJournal } from "../seam.ts";
import { childKeys, childRunId, isEnd, LIFECYCLE_STEP } from "../step-id.ts";
import { type AuditReport, type CheckedJournal, type ChildLink, checkTree } from "./verify-tree.ts";

/** Recomputes a chain. `fault` names the first record that was changed. */
export function checkChain(runId: string, records: readonly JournalRecord[]): CheckedChain {
  return checkDigested(runId, records, ({ value }) => (value.isWellFormed() ? digestOf(value) : undefined));
}

export interface CheckedChain {
  readonly head: string;
  readonly fault?: string;
}

/** The same for records with the digests of their values; undefined for a value that cannot have been written. */
export function checkDigested<R extends Omit<JournalRecord, "value">>(
  runId: string,
  records: readonly R[],
  digest: (record: R) => string | undefined,
): CheckedChain {
  let head: string = GENESIS;
  for (const [index, record] of records.entries()) {
    if (record.seq !== index) return { head, fault: `record ${index} is missing (found ${record.seq} in its place)` };
    const of = digest(record);
    const computed = of === undefined ? "" : hashDigested(head, runId, record, of);
    if (computed !== record.hash || !isText(record)) {
      return { head, fault: `record ${record.seq} (${record.stepId}) was changed after it was written` };
    }
    head = computed;
  }
  return { head };
}

/** A lone surrogate, which is never written, hashes like the replacement character. */
function isText({ stepId, incarnation, events }: Omit<JournalRecord, "value">): boolean {
  return stepId.isWellFormed() && incarnation.isWellFormed() && events.isWellFormed();
}

/**
 * Verifies the journals of a run and its children: every record's hash, the count, head, input and end in the run's row, and each
 * child against its parent's record. A writer of the whole store can rehash it, which only `expectedHead` detects.
 */
export function verifyJournal(journals: readonly RunJournal[], expectedHead?: string): AuditReport {
  return checkTree(journals.map(checked), expectedHead);
}

function checked(journal: RunJournal): CheckedJournal {
  const { runId, parentId, records } = journal;
  const ended = records.some(isEnd);
  return { runId, parentId, records: records.length, ended, ...checkAlone(journal), children: childrenOf(journal) };
}

/** Verifies one journal without its children. */
export function checkAlone(journal: RunJournal): { readonly head: string; readonly faults: readonly string[] } {
  const { head, fault } = checkChain(journal.runId, journal.records);
  return { head, faults: fault === undefined ? rowFaults(journal, head) : [fault] };
}

/** Compares a run's row with its journal. */
function rowFaults({ records, claimed, input, end }: RunJournal, head: string): readonly string[] {
  const faults: string[] = [];
  if (records.length === 0) faults.push("the journal is empty");
  if (claimed.records !== records.length) {
    faults.push(`the run's row counts ${claimed.records} records, the journal has ${records.length}`);
  } else if (claimed.head !== head) {
    faults.push("the run's row has another head than its last record");
  }
  if (records.length > 0 && records[0]?.value !== JSON.stringify(input)) {
    faults.push("the run's row has another input than its journal");
  }
  const ends = records.filter(isEnd);
  const [recorded] = ends;
  if (ends.length > 1 || (recorded !== undefined && recorded !== records.at(-1))) {
    faults.push("records follow the run's end");
  }
  if (recorded?.value !== (end === undefined ? undefined : JSON.stringify(end))) {
    faults.push("the run's row has another end than its journal");
  }
  return faults;
}

/** The children that a run's records name. */
function childrenOf({ runId, records }: RunJournal): ReadonlyMap<string, ChildLink> {
  const children = new Map<string, ChildLink>();
  const done = new Map<number, JournalRecord>();
  for (const record of records) if (record.phase === "done") done.set(record.ordinal, record);
  for (const record of records) {
    const keys = childKeys(record);
    if (keys === undefined) continue;
    const join = done.get(record.ordinal);
    const joined = join && jsonOf(join);
    for (const key of keys) {
      const child = childRunId(runId, record.stepId, key);
      children.set(child, joined === undefined ? "started" : { head: textField(field(joined, key), "head") ?? "" });
    }
  }
  const last = records.at(-1);
  const closed = last?.stepId === LIFECYCLE_STEP.closed ? field(field(jsonOf(last), "value"), "children") : undefined;
  if (isJsonObject(closed)) {
    for (const child of Object.keys(closed)) children.set(child, { head: textField(closed, child) ?? "" });
  }
  return children;
}

/** A record's value; null if it is not JSON, which the chain check reports. */
function jsonOf({ value }: JournalRecord): Json {
  const read = parseJson(value);
  return read.ok ? read.value : null;
}
