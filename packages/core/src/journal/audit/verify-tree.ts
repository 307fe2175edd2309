/** Something that differs from what was written. */
export interface AuditFault {
  readonly runId: string;
  readonly fault: string;
}
export interface AuditReport {
  readonly faults: readonly AuditFault[];
  readonly records: number;
  /** Head of the root's chain. Keep it elsewhere to detect a journal that was rewritten as a whole. */
  readonly head: string;
}

/** One journal of a tree, with its own chain verified. */
export interface CheckedJournal {
  readonly runId: string;
  readonly parentId?: string | undefined;
  readonly records: number;
  /** The computed head. */
  readonly head: string;
  readonly ended: boolean;
  /** Faults of the journal alone. */
  readonly faults: readonly string[];
  /** The children that its records name. */
  readonly children: ReadonlyMap<string, ChildLink>;
}
/** A child's recorded head; `started` if it has no recorded end; `unnamed` if its end was recorded without a head. */
export type ChildLink = { readonly head: string } | "started" | "unnamed";

/** Reports journals that occur twice, that do not belong to the tree, or that differ from what their parents recorded. */
export function checkTree(journals: readonly CheckedJournal[], expectedHead?: string): AuditReport {
  const faults: AuditFault[] = [];
  const byId = new Map<string, CheckedJournal>();
  let records = 0;
  for (const journal of journals) {
    const { runId } = journal;
    records += journal.records;
    if (byId.has(runId)) faults.push({ runId, fault: "this journal occurs twice" });
    byId.set(runId, journal);
    for (const fault of journal.faults) faults.push({ runId, fault });
  }
  const [top, ...others] = journals.filter(({ parentId }) => parentId === undefined || !byId.has(parentId));
  for (const { runId, parentId } of others) {
    const fault = parentId === undefined ? "it is not part of this run" : `its parent ${parentId} is missing`;
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

/** Children that are missing, that differ from what their parent recorded, or that no parent recorded. */
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
