import { field, type Json, parseJson, textField } from "../../base/json.ts";
import { childRunId, isEnd } from "../step-id.ts";
import type { ExportedJournal, ExportedRecord } from "./export.ts";
import type { RunExport } from "./read-export.ts";
import { checkDigested } from "./verify.ts";
import { type AuditReport, type CheckedJournal, type ChildLink, checkTree } from "./verify-tree.ts";

export interface ExportReport extends AuditReport {
  /** Children whose heads their parent's events do not name, so that only their own chains verify them. */
  readonly unnamed: readonly string[];
}

/**
 * Verifies an export from the file alone: every record's hash, the counts and heads, the links to children and the file's digest.
 * A writer of the file can recompute all of them, which only `expectedHead` detects.
 */
export function verifyExport({ journals, faults }: RunExport, expectedHead?: string): ExportReport {
  const below = Map.groupBy(journals, ({ parentId }) => parentId);
  const checked = journals.map((journal) => {
    const ids = (below.get(journal.runId) ?? []).map(({ runId }) => runId);
    return checkOne(journal, ids);
  });
  const report = checkTree(checked, expectedHead);
  const unnamed = checked.flatMap(({ children }) => [...children].filter(([, link]) => link === "unnamed"));
  // In a file that was read only in part, missing journals are not faults.
  const whole = faults.length === 0;
  const chains = whole ? report.faults : report.faults.filter(({ fault }) => fault.startsWith("record "));
  return { ...report, faults: [...chains, ...faults], unnamed: unnamed.map(([runId]) => runId) };
}

function checkOne(journal: ExportedJournal, childIds: readonly string[]): CheckedJournal {
  const { runId, parentId, records } = journal;
  const { head, fault } = checkDigested(runId, records, ({ valueDigest }) => valueDigest);
  const faults = fault === undefined ? claimFaults(journal, head) : [fault];
  const children = childrenOf(journal, childIds);
  return { runId, parentId, records: records.length, head, ended: records.some(isEnd), faults, children };
}

/** Compares the journal's own line with its records. */
function claimFaults({ records, claimed }: ExportedJournal, head: string): readonly string[] {
  if (records.length === 0) return ["the journal is empty"];
  if (claimed.records !== records.length)
    return [`${claimed.records} records are claimed, and ${records.length} there`];
  if (claimed.head !== head) return ["another head is claimed than the last record has"];
  return records.slice(0, -1).some(isEnd) ? ["records follow the run's end"] : [];
}

/** The children that a run's events name. */
function childrenOf({ runId, records }: ExportedJournal, childIds: readonly string[]): ReadonlyMap<string, ChildLink> {
  const children = new Map<string, ChildLink>();
  const name = (child: string, by: Json): void => {
    const head = textField(by, "head");
    if (head !== undefined) children.set(child, { head });
  };
  const joined = new Set<number>();
  for (const record of records) if (record.phase === "done") joined.add(record.ordinal);
  // Each step's children are searched once, however often a hostile file opens the step.
  const byStep = Map.groupBy(childIds, (id) => id.slice(0, id.lastIndexOf("/")));
  for (const record of records) {
    const link = joined.has(record.ordinal) ? "unnamed" : "started";
    // Events need not list the children: their ids contain the step that started them.
    if (record.phase === "open") {
      const step = `${runId}/${record.stepId}`;
      for (const id of byStep.get(step) ?? []) children.set(id, link);
      byStep.delete(step);
    }
    for (const event of eventsIn(record)) {
      const [type, data] = [field(event, "type"), field(event, "data")];
      if (type === "fanOut.started" && record.phase === "open") {
        for (const key of list(field(data, "siblings")))
          if (typeof key === "string") children.set(childRunId(runId, record.stepId, key), link);
      } else if (type === "fanOut.joined" && record.phase === "done") {
        for (const outcome of list(field(data, "outcomes")))
          name(childRunId(runId, record.stepId, textField(outcome, "name") ?? ""), outcome);
      } else if (type === "run.finished" && isEnd(record)) {
        for (const child of list(field(data, "children"))) name(textField(child, "run") ?? "", child);
      }
    }
  }
  return children;
}

/** The events of a record; empty if they are not JSON, which the chain check reports. */
function eventsIn({ events }: ExportedRecord): readonly Json[] {
  const read = parseJson(events);
  return read.ok ? list(read.value) : [];
}

function list(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}
