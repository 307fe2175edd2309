import { childrenBefore } from "../../journal/admin/copy-run.ts";
import type { JournalRecord, RunJournal } from "../../journal/seam.ts";
import { childKeys, childRunId, parseStepId } from "../../journal/step-id.ts";

/** A position in a run's record just before an execution, at which a forked run may begin. */
export interface ForkPoint {
  /** The execution that begins there, such as `plan#1`. */
  readonly executionId: string;
  /** The execution's run: the root, or a sibling of one of its fan-outs. */
  readonly runId: string;
  /** The seq of the root's first record after it. */
  readonly before: number;
  /** Hash of the root's last record before it. */
  readonly head: string;
  /** Completed siblings that run again: the one whose execution this is. */
  readonly again: readonly string[];
}

/**
 * All fork points of a run, in order. Those of siblings are at the start of their fan-out: siblings are independent, so the completed
 * ones are kept whenever they completed.
 */
export function forkPointsOf(journals: readonly RunJournal[]): readonly ForkPoint[] {
  const [root] = journals;
  if (root === undefined) return [];
  const { runId, records } = root;
  const byId = new Map(journals.map((journal) => [journal.runId, journal]));
  return records.flatMap((record, index): readonly ForkPoint[] => {
    const entered = executionEntered(record);
    if (entered !== undefined) {
      const head = records[index - 1]?.hash;
      return head === undefined ? [] : [{ executionId: entered, runId, before: record.seq, head, again: [] }];
    }
    const at = { before: record.seq + 1, head: record.hash };
    return (childKeys(record) ?? []).flatMap((key) => {
      const child = childRunId(runId, record.stepId, key);
      const enter = byId.get(child)?.records.find((own) => executionEntered(own) !== undefined);
      const first = enter === undefined ? undefined : executionEntered(enter);
      return first === undefined ? [] : [{ executionId: first, runId: child, ...at, again: [key] }];
    });
  });
}

/** The records of the root before a fork point, and the journals of the child runs that are kept. */
export function recordsBefore(journals: readonly RunJournal[], { before, again }: ForkPoint): readonly RunJournal[] {
  const [root, ...others] = journals;
  if (root === undefined) return [];
  const records = root.records.slice(0, before);
  const kept = new Set(childrenBefore(root.runId, records, journals, again).map(({ runId }) => runId));
  const children = others.filter(({ runId, parentId }) => {
    // Journals of descendants come after that of their parent.
    const isKept = kept.has(runId) || (parentId !== undefined && kept.has(parentId));
    if (isKept) kept.add(runId);
    return isKept;
  });
  return [{ ...root, records }, ...children];
}

/** The execution whose first record this is. */
function executionEntered({ phase, stepId }: JournalRecord): string | undefined {
  const step = phase === "done" ? parseStepId(stepId) : undefined;
  return step?.kind === "enter" && step.attempt === 1 ? step.executionId : undefined;
}
