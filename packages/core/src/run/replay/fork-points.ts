import { copiedPart } from "../../journal/admin/copy-run.ts";
import type { CopiedPart, JournalRecord, RunJournal } from "../../journal/seam.ts";
import { childKeys, childRunId, isLifecycle, LIFECYCLE_STEP, parseStepId } from "../../journal/step-id.ts";

/** A position in a run's record just before an execution, at which a forked run may begin. */
export interface ForkPoint extends CopiedPart {
  /**
   * The execution that begins there, such as `plan#1`. The keys of the children that lead to it are behind a colon, `lint#2:style`,
   * unless a child of the root begins with it; where another execution has that name, fan-outs are named too.
   */
  readonly executionId: string;
  /** The execution's run: the root, or a child of one of its fan-outs. */
  readonly runId: string;
  /** Hash of the root's last record before it. */
  readonly head: string;
  /** Completed siblings that run again: the one whose execution this is. */
  readonly again: readonly string[];
}

/** An execution that a run of the tree has entered. */
interface Entered {
  readonly executionId: string;
  readonly runId: string;
  readonly keys: readonly string[];
  /** Of the root. */
  readonly part: CopiedPart;
}

/**
 * All fork points of a run, in order. Those of children are in the open fan-out: children are independent, so the completed
 * ones are kept whenever they completed.
 */
export function forkPointsOf(journals: readonly RunJournal[]): readonly ForkPoint[] {
  const [root] = journals;
  if (root === undefined) return [];
  const { runId, records } = root;
  const byId = new Map(journals.map((journal) => [journal.runId, journal]));
  const entered = enteredIn(root, [], byId);
  const names = new Map<string, number>();
  return entered.flatMap((each): readonly ForkPoint[] => {
    const { before, again = [], inside } = each.part;
    const head = records[before - 1]?.hash;
    if (head === undefined) return [];
    const executionId = nameOf(each, runId, names);
    const point = { executionId, runId: each.runId, before, head, again };
    return [inside === undefined ? point : { ...point, inside }];
  });
}

/** A name that no earlier execution has. The items of a list, which begin at one place, share theirs. */
function nameOf({ executionId, runId, keys, part }: Entered, root: string, names: Map<string, number>): string {
  const { before, inside } = part;
  const isPlain = keys.length === 0 || (keys.length === 1 && inside === undefined);
  const known = names.get(executionId);
  const short = `${executionId}:${keys.join("/")}`;
  const name =
    isPlain && (known === undefined || known === before)
      ? executionId
      : names.has(short)
        ? `${executionId}:${runId.slice(root.length + 1)}`
        : short;
  names.set(name, before);
  return name;
}

/** The executions of a run and of its children, with the part of it that stays when it is forked before each. */
function enteredIn(
  { runId, records }: RunJournal,
  keys: readonly string[],
  byId: ReadonlyMap<string, RunJournal>,
): readonly Entered[] {
  return records.flatMap((record): readonly Entered[] => {
    const executionId = executionEntered(record);
    if (executionId !== undefined) return [{ executionId, runId, keys, part: { before: record.seq } }];
    const before = record.seq + 1;
    return (childKeys(record) ?? []).flatMap((key) => {
      const child = byId.get(childRunId(runId, record.stepId, key));
      if (child === undefined) return [];
      return enteredIn(child, [...keys, key], byId).map((inner, index): Entered => {
        // A child that begins with this execution starts over.
        const part = { before, again: [key], ...(index === 0 ? {} : { inside: { ...inner.part, key } }) };
        return { ...inner, part };
      });
    });
  });
}

/** The records of the root before a fork point, and the journals of the child runs that are kept. */
export function recordsBefore(journals: readonly RunJournal[], point: ForkPoint): readonly RunJournal[] {
  return copiedPart(journals, point);
}

/** What begins the records of a process in a root that has records. */
const BEGINS_LIFE: ReadonlySet<string> = new Set([LIFECYCLE_STEP.resume, LIFECYCLE_STEP.forked]);

/**
 * The fork point of what these journals hold, also for a run that works: children that have not completed in them start over.
 * It is behind the root's records of the resumes and forks that came while the children worked, up to the last one whose process
 * recorded something that is kept: they say with which pipeline and tools that was made.
 */
export function asRead(journals: readonly RunJournal[], point: ForkPoint): ForkPoint {
  const [root] = journals;
  const later = root?.records.slice(point.before) ?? [];
  const next = later.findIndex((record) => !isLifecycle(record));
  const meanwhile = next < 0 ? later : later.slice(0, next);
  const [, ...children] = recordsBefore(journals, point);
  const made = new Set(children.flatMap(({ records }) => records.map(({ incarnation }) => incarnation)));
  const last = meanwhile.findLastIndex(({ stepId, incarnation }) => BEGINS_LIFE.has(stepId) && made.has(incarnation));
  const byId = new Map(journals.map((journal) => [journal.runId, journal]));
  const kept = root === undefined ? point : { ...point, ...withoutWorking(root, point, byId) };
  return { ...kept, before: point.before + last + 1, head: meanwhile[last]?.hash ?? point.head };
}

/** The part without the children of its open step that have not completed. */
function withoutWorking<P extends CopiedPart>(
  { runId, records }: RunJournal,
  part: P,
  byId: ReadonlyMap<string, RunJournal>,
): P & { readonly again: readonly string[] } {
  const { before, again = [], inside } = part;
  const open = records[before - 1];
  const childOf = (key: string): RunJournal | undefined => byId.get(childRunId(runId, open?.stepId ?? "", key));
  const working = (open === undefined ? undefined : childKeys(open))?.filter(
    (key) => key !== inside?.key && childOf(key)?.end?.status !== "completed",
  );
  const within = inside === undefined ? undefined : childOf(inside.key);
  const fixed = { ...part, again: [...new Set([...again, ...(working ?? [])])] };
  return inside === undefined || within === undefined
    ? fixed
    : { ...fixed, inside: withoutWorking(within, inside, byId) };
}

/** The execution whose first record this is. */
function executionEntered({ phase, stepId }: JournalRecord): string | undefined {
  const step = phase === "done" ? parseStepId(stepId) : undefined;
  return step?.kind === "enter" && step.attempt === 1 ? step.executionId : undefined;
}
