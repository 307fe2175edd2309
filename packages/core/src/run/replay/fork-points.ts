import { childrenBefore } from "../../journal/admin/copy-run.ts";
import type { JournalRecord, RunJournal } from "../../journal/seam.ts";
import { childKeys, childRunId, parseStepId } from "../../journal/step-id.ts";

/** A place in a run's record just before a state is entered: what a forked run may begin with. */
export interface ForkPoint {
  /** The execution that begins there, such as `plan#1`. */
  readonly executionId: string;
  /** The run that it is of: the root, or a sibling of one of its forks. */
  readonly runId: string;
  /** The seq of the root's first record that lies behind it. */
  readonly before: number;
  /** Hash of the root's last record before it. */
  readonly head: string;
  /** Siblings that begin anew there, beside those that did not complete: the one whose execution it is. */
  readonly again: readonly string[];
}

/**
 * Every boundary of a run, in order. That of a sibling lies where its fork began: siblings know nothing of each other, so those
 * that completed belong to its past whenever that was.
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

/** What of a run lies before a boundary: records of the root, and the journals of siblings that belong to that past. */
export function recordsBefore(journals: readonly RunJournal[], { before, again }: ForkPoint): readonly RunJournal[] {
  const [root, ...others] = journals;
  if (root === undefined) return [];
  const records = root.records.slice(0, before);
  const past = new Set(childrenBefore(root.runId, records, journals, again).map(({ runId }) => runId));
  const come = others.filter(({ runId, parentId }) => {
    // What is below one that comes along stands after it.
    const isPast = past.has(runId) || (parentId !== undefined && past.has(parentId));
    if (isPast) past.add(runId);
    return isPast;
  });
  return [{ ...root, records }, ...come];
}

/** The execution that a record enters: the first thing a state leaves. */
function executionEntered({ phase, stepId }: JournalRecord): string | undefined {
  const step = phase === "done" ? parseStepId(stepId) : undefined;
  return step?.kind === "enter" && step.attempt === 1 ? step.executionId : undefined;
}
