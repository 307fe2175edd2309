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

/** One journal of a tree, its own chain looked at already. */
export interface CheckedJournal {
  readonly runId: string;
  readonly parentId?: string | undefined;
  readonly records: number;
  /** As computed. */
  readonly head: string;
  readonly ended: boolean;
  /** What is wrong with the journal by itself. */
  readonly faults: readonly string[];
  /** What its records say about its children. */
  readonly children: ReadonlyMap<string, ChildLink>;
}
/** The head that a child ended with; or that it was only started; or that it ended, and nothing here says with which head. */
export type ChildLink = { readonly head: string } | "started" | "unnamed";

/** Puts a tree together: journals that are there twice, that belong elsewhere, or that are not what their parents recorded. */
export function checkTree(journals: readonly CheckedJournal[], expectedHead?: string): AuditReport {
  const faults: AuditFault[] = [];
  const byId = new Map<string, CheckedJournal>();
  let records = 0;
  for (const journal of journals) {
    const { runId } = journal;
    records += journal.records;
    if (byId.has(runId)) faults.push({ runId, fault: "this journal is there twice" });
    byId.set(runId, journal);
    for (const fault of journal.faults) faults.push({ runId, fault });
  }
  const [top, ...others] = journals.filter(({ parentId }) => parentId === undefined || !byId.has(parentId));
  for (const { runId, parentId } of others) {
    const fault = parentId === undefined ? "it is no part of this run" : `its parent ${parentId} is missing`;
    faults.push({ runId, fault });
  }
  const below = Map.groupBy(journals, ({ parentId }) => parentId);
  for (const parent of journals) faults.push(...childFaults(parent, below.get(parent.runId) ?? [], byId));
  const head = top?.head ?? "";
  if (expectedHead !== undefined && expectedHead !== head) {
    faults.push({ runId: top?.runId ?? "", fault: `the head is ${head}, expected ${expectedHead}` });
  }
  return { faults, records, head };
}

/** Children that are not there, are not what their parent recorded, or that no parent knows. */
function childFaults(
  parent: CheckedJournal,
  all: readonly CheckedJournal[],
  byId: ReadonlyMap<string, CheckedJournal>,
): AuditFault[] {
  const faults: AuditFault[] = [];
  for (const [runId, link] of parent.children) {
    if (link !== "started" && !byId.has(runId)) faults.push({ runId, fault: "the journal of this child is missing" });
  }
  for (const { runId, head } of all) {
    const link = parent.children.get(runId);
    if (link === undefined) faults.push({ runId, fault: `its parent ${parent.runId} never started it` });
    else if (link === "started") {
      if (parent.ended) faults.push({ runId, fault: `its parent ${parent.runId} ended without it` });
    } else if (link !== "unnamed" && link.head !== head) {
      faults.push({ runId, fault: "this is not the journal that its parent recorded" });
    }
  }
  return faults;
}
