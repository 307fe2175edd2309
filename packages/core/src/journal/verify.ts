import { field, isJsonObject } from "../base/json.ts";
import { GENESIS, hashRecord } from "./chain.ts";
import type { JournalRecord, RunJournal } from "./seam.ts";

/** Recomputes a chain. `fault` says which record is not what was written. */
export function checkChain(runId: string, records: readonly JournalRecord[]): { readonly head: string; readonly fault?: string } {
  let head: string = GENESIS;
  for (let index = 0; index < records.length; index += 1) {
    const record = records[index];
    if (record === undefined) break;
    if (record.seq !== index) return { head, fault: `record ${index} is missing (found ${record.seq} in its place)` };
    const { hash: claimed, ...unhashed } = record;
    const computed = hashRecord(head, runId, unhashed);
    if (computed !== claimed) return { head, fault: `record ${record.seq} (${record.stepId}) was changed after it was written` };
    head = computed;
  }
  return { head };
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
 * Checks the journals of a run and its children: every record's hash, the count and head the run's row claims, and each
 * ended child's head in its parent's records. Someone who can rewrite the whole store can rehash it: give `expectedHead`.
 */
export function verifyJournal(journals: readonly RunJournal[], expectedHead?: string): AuditReport {
  const faults: AuditFault[] = [];
  const heads = new Map<string, string>();
  let records = 0;
  for (const journal of journals) {
    const { runId } = journal;
    const { head, fault } = checkChain(runId, journal.records);
    records += journal.records.length;
    heads.set(runId, head);
    if (fault !== undefined) {
      faults.push({ runId, fault });
      continue;
    }
    const { claimed } = journal;
    if (claimed.records !== journal.records.length) {
      faults.push({ runId, fault: `the run's row counts ${claimed.records} records, the journal has ${journal.records.length}` });
    } else if (claimed.head !== head) {
      faults.push({ runId, fault: "the run's row has another head than its last record" });
    }
    const last = journal.records.at(-1);
    const ends = journal.records.filter((record) => record.phase === "life" && record.stepId === "end");
    if (ends.length > 1 || (ends.length === 1 && last !== ends[0])) faults.push({ runId, fault: "records follow the run's end" });
    if (journal.end !== undefined && ends[0]?.value !== JSON.stringify(journal.end)) {
      faults.push({ runId, fault: "the run's row has another end than its last record" });
    }
  }
  for (const parent of journals) for (const fault of childFaults(parent, heads)) faults.push(fault);
  for (const child of journals) {
    if (child.parentId !== undefined && !heads.has(child.parentId)) faults.push({ runId: child.runId, fault: `its parent ${child.parentId} is missing` });
  }
  const head = journals[0] === undefined ? "" : (heads.get(journals[0].runId) ?? "");
  if (expectedHead !== undefined && expectedHead !== head) {
    faults.push({ runId: journals[0]?.runId ?? "", fault: `the head is ${head}, expected ${expectedHead}` });
  }
  return { faults, records, head };
}

/** Heads of children that the parent's joins recorded, compared with the children that are there. */
function childFaults(parent: RunJournal, heads: ReadonlyMap<string, string>): readonly AuditFault[] {
  const faults: AuditFault[] = [];
  for (const record of parent.records) {
    if (record.phase !== "done" || !record.events.includes('"type":"fork.joined"')) continue;
    const joined: Readonly<Record<string, { readonly head: string }>> = JSON.parse(record.value);
    for (const [key, { head }] of Object.entries(joined)) {
      const childId = `${parent.runId}/${record.stepId}/${key}`;
      const found = heads.get(childId);
      if (found === undefined) faults.push({ runId: childId, fault: "the journal of this child is missing" });
      else if (found !== head) faults.push({ runId: childId, fault: "this child's journal is not the one its parent joined" });
    }
  }
  const children = parent.end?.status === "cancelled" ? field(parent.end.value, "children") : undefined;
  if (!isJsonObject(children)) return faults;
  for (const [childId, head] of Object.entries(children)) {
    if (heads.get(childId) !== head) faults.push({ runId: childId, fault: "this child's journal is not the one its parent closed" });
  }
  return faults;
}
