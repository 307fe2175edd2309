import { field, isJsonObject, type Json, parseJson } from "../base/json.ts";
import { GENESIS, hashRecord } from "./chain.ts";
import { childRunId, forkKeys } from "./fork.ts";
import { isEnd, LIFE } from "./life.ts";
import type { JournalRecord, RunJournal } from "./seam.ts";

/** Recomputes a chain. `fault` says which record is not what was written. */
export function checkChain(
  runId: string,
  records: readonly JournalRecord[],
): { readonly head: string; readonly fault?: string } {
  let head: string = GENESIS;
  for (const [index, record] of records.entries()) {
    if (record.seq !== index) return { head, fault: `record ${index} is missing (found ${record.seq} in its place)` };
    const { hash: claimed, ...unhashed } = record;
    const computed = hashRecord(head, runId, unhashed);
    if (computed !== claimed || !isText(record)) {
      return { head, fault: `record ${record.seq} (${record.stepId}) was changed after it was written` };
    }
    head = computed;
  }
  return { head };
}

/** A lone surrogate hashes like the replacement character, and was never written. */
function isText({ stepId, incarnation, value, events }: JournalRecord): boolean {
  return stepId.isWellFormed() && incarnation.isWellFormed() && value.isWellFormed() && events.isWellFormed();
}

/** One thing that is not as it was written. */
export interface AuditFault {
  readonly runId: string;
  readonly fault: string;
}
export interface AuditReport {
  readonly faults: readonly AuditFault[];
  readonly records: number;
  /** Head of the root's chain; keep it elsewhere to notice a journal that was rewritten as a whole. */
  readonly head: string;
}

/**
 * Checks the journals of a run and its children: every record's hash, the count, head, input and end the run's row claims, and each
 * child against what its parent recorded of it. Someone who can rewrite the whole store can rehash it: give `expectedHead`.
 */
export function verifyJournal(journals: readonly RunJournal[], expectedHead?: string): AuditReport {
  const faults: AuditFault[] = [];
  const heads = new Map<string, string>();
  const byId = new Map<string, RunJournal>();
  let records = 0;
  for (const journal of journals) {
    const { runId } = journal;
    records += journal.records.length;
    if (byId.has(runId)) faults.push({ runId, fault: "this journal is there twice" });
    byId.set(runId, journal);
    const { head, fault } = checkChain(runId, journal.records);
    heads.set(runId, head);
    for (const each of fault === undefined ? rowFaults(journal, head) : [fault]) faults.push({ runId, fault: each });
  }
  const [top, ...others] = journals.filter(({ parentId }) => parentId === undefined || !byId.has(parentId));
  for (const { runId, parentId } of others) {
    const fault = parentId === undefined ? "it is no part of this run" : `its parent ${parentId} is missing`;
    faults.push({ runId, fault });
  }
  const below = Map.groupBy(journals, ({ parentId }) => parentId);
  for (const parent of journals) faults.push(...childFaults(parent, below.get(parent.runId) ?? [], heads));
  const head = top === undefined ? "" : (heads.get(top.runId) ?? "");
  if (expectedHead !== undefined && expectedHead !== head) {
    faults.push({ runId: top?.runId ?? "", fault: `the head is ${head}, expected ${expectedHead}` });
  }
  return { faults, records, head };
}

/** What a run's row says, compared with its journal. */
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

/** What a run's records say about its children: the head each ended with; undefined for one that was only started. */
function childrenOf({ runId, records }: RunJournal): ReadonlyMap<string, string | undefined> {
  const children = new Map<string, string | undefined>();
  const done = new Map<number, JournalRecord>();
  for (const record of records) if (record.phase === "done") done.set(record.ordinal, record);
  for (const record of records) {
    const keys = forkKeys(record);
    if (keys === undefined) continue;
    const join = done.get(record.ordinal);
    const joined = join && jsonOf(join);
    for (const key of keys) {
      const child = childRunId(runId, record.stepId, key);
      children.set(child, joined === undefined ? undefined : textOf(field(field(joined, key), "head")));
    }
  }
  const last = records.at(-1);
  const closed = last?.stepId === LIFE.closed ? field(field(jsonOf(last), "value"), "children") : undefined;
  if (isJsonObject(closed)) for (const [child, head] of Object.entries(closed)) children.set(child, textOf(head));
  return children;
}

/** Children that are not there, are not what their parent recorded, or that no parent knows. */
function childFaults(parent: RunJournal, all: readonly RunJournal[], heads: ReadonlyMap<string, string>): AuditFault[] {
  const faults: AuditFault[] = [];
  const known = childrenOf(parent);
  for (const [runId, head] of known) {
    if (head !== undefined && !heads.has(runId)) faults.push({ runId, fault: "the journal of this child is missing" });
  }
  const ended = parent.records.some(isEnd);
  for (const { runId } of all) {
    const head = known.get(runId);
    if (!known.has(runId)) faults.push({ runId, fault: `its parent ${parent.runId} never started it` });
    else if (head === undefined) {
      if (ended) faults.push({ runId, fault: `its parent ${parent.runId} ended without it` });
    } else if (head !== heads.get(runId)) {
      faults.push({ runId, fault: "this is not the journal that its parent recorded" });
    }
  }
  return faults;
}

/** What should be a text; something that is none is like no head of anything. */
function textOf(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}

/** A record's value; null for one that cannot be read, which its chain tells. */
function jsonOf({ value }: JournalRecord): Json {
  const read = parseJson(value);
  return read.ok ? read.value : null;
}
