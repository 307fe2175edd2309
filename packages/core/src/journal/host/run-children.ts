import { SluiceError } from "../../base/errors.ts";
import { draftCommit, genesisPosition, lifecycleRecord, type RunPosition, toRecordedValue } from "../record.ts";
import type { ChildRun, JournalRecord, RunChildrenOptions, RunEnd, SiblingEnd } from "../seam.ts";
import { childKeys, childRunId, LIFECYCLE_STEP } from "../step-id.ts";
import type { RunRow } from "../store/journal-store.ts";
import { type ActiveRun, Cancellation, stopOnFailure } from "./active-run.ts";
import { cancelLeaf, cancelWithChildren } from "./cancel-orphans.ts";
import { loadChildEnd, loadForResume, NO_RECORDED_STEPS, type ResumeState } from "./recorded-steps.ts";

/** Refuses children that a resume could not tell apart, or that are not the recorded ones. */
export function checkChildren(
  runId: string,
  stepId: string,
  children: readonly ChildRun[],
  known: JournalRecord | undefined,
): void {
  const keys = children.map((child) => child.key);
  const seen = new Set<string>();
  const wrong = keys.find((key) => key === "" || !key.isWellFormed() || seen.size === seen.add(key).size);
  if (wrong !== undefined) {
    const rule = "keys are unique, not empty and valid Unicode";
    throw new SluiceError("Validation", "fork_key", `run ${runId}: step ${stepId} has a child "${wrong}"; ${rule}`);
  }
  if (known === undefined) return;
  const recorded = childKeys(known);
  if (JSON.stringify(recorded) === JSON.stringify(keys)) return;
  throw new SluiceError(
    "Host",
    "journal_mismatch",
    `run ${runId}: step ${stepId} is recorded with the children ${JSON.stringify(recorded)}, but the program started ${JSON.stringify(keys)}`,
  );
}

/** The row of a child, if it was started. Throws if the id belongs to another parent's run. */
async function childRow({ store, at }: ActiveRun, childId: string): Promise<RunRow | undefined> {
  const row = await store.run(childId);
  if (row === undefined || row.parentId === at.runId) return row;
  const rule = "step ids and keys must not form the same id";
  const message = `a run ${childId} already exists and is not a child of ${at.runId}; ${rule}`;
  throw new SluiceError("Host", "run_exists", message);
}

/** A child that is about to run or to be closed here. */
interface OpenedChild extends Pick<ResumeState, "recorded" | "input" | "forked"> {
  readonly at: RunPosition;
}

/** A child that has not ended, with its row if an earlier process started it. */
interface WaitingChild {
  readonly child: ChildRun;
  readonly childId: string;
  readonly known: RunRow | undefined;
  /** What was read of it. */
  readonly opened?: OpenedChild;
}

/** Creates a child, or loads the one of `row` to resume it. */
async function openChild(parent: ActiveRun, childId: string, child: ChildRun, row?: RunRow): Promise<OpenedChild> {
  const { store, clock, tree } = parent;
  const { runId: parentId, epoch, incarnation } = parent.at;
  if (row !== undefined) {
    const { seq, head, ...resumed } = await loadForResume(store, row);
    return { at: { runId: childId, epoch, incarnation, seq, head }, ...resumed };
  }
  const { text, value: input } = toRecordedValue(child.input, `the input of ${childId}`);
  const start = genesisPosition(childId, incarnation);
  const commit = draftCommit(start, lifecycleRecord(LIFECYCLE_STEP.start, child.events, text), clock);
  const seed = { runId: childId, rootId: tree.runId, parentId, createdAt: clock.now(), input };
  await stopOnFailure(tree, () => store.create(seed, { ...commit, epoch }));
  const at = { ...start, epoch, seq: 1, head: commit.record.hash };
  return { at, recorded: NO_RECORDED_STEPS, input, forked: false };
}

/**
 * Runs all children concurrently and always waits for every one. `followed` belongs to a step that an earlier process began: it is
 * called when its children have begun to follow their recorded steps, and resolves when no run of the tree follows any.
 */
export async function runChildren(
  parent: ActiveRun,
  stepId: string,
  children: readonly ChildRun[],
  options: RunChildrenOptions,
  followed: (() => Promise<void>) | undefined,
): Promise<Readonly<Record<string, SiblingEnd>>> {
  const { store, clock, control, tree } = parent;
  const settled = new Map<string, SiblingEnd>();
  const running = new Set<Cancellation>();
  let decided: SluiceError | undefined;
  let fault: { readonly thrown: unknown } | undefined;

  /** Why the children have to end, if they do. Only an interruption from before they ran is one of their parent. */
  const cancelReason = (): SluiceError | undefined => control.cancelled ?? control.interrupted ?? decided;
  const cancelRest = (): void => {
    const reason = cancelReason();
    if (reason !== undefined) for (const child of running) child.cancel(reason);
  };
  /** A fault in one journal stops the whole tree, whose runs can be resumed. */
  const onFault = (thrown: unknown): void => {
    fault ??= { thrown };
    tree.stop(thrown);
  };
  const onEnd = (key: string, end: SiblingEnd): void => {
    settled.set(key, end);
    if (decided !== undefined) return;
    decided = decidedBy(options, key, end);
    cancelRest();
  };
  const work = async (key: string, { at, recorded, input }: OpenedChild): Promise<void> => {
    const child = new Cancellation();
    running.add(child);
    const ended = tree.work(child, at, recorded, input);
    // The cancel may have come while its journal was opened.
    cancelRest();
    try {
      const end = await ended;
      running.delete(child);
      onEnd(key, end);
    } catch (thrown) {
      running.delete(child);
      onFault(thrown);
    }
  };

  const works: Promise<void>[] = [];
  const begin = async (waiting: readonly WaitingChild[]): Promise<void> => {
    for (const { child, childId, known, opened: read } of waiting) {
      if (control.stopped !== undefined) throw control.stopped;
      const reason = cancelReason();
      const opened = read ?? (await openChild(parent, childId, child, known));
      if (reason === undefined) works.push(work(child.key, opened));
      else {
        const close = opened.forked ? cancelWithChildren : cancelLeaf;
        onEnd(child.key, await close({ store, clock, rootId: tree.runId }, opened.at, reason.message));
      }
    }
  };
  /** Resumes the children that have steps to follow, unless they have to end, which is recorded. Returns the others. */
  const follow = async (waiting: readonly WaitingChild[]): Promise<readonly WaitingChild[]> => {
    const others: WaitingChild[] = [];
    for (const one of waiting) {
      if (control.stopped !== undefined) throw control.stopped;
      const { child, childId, known } = one;
      const opened = known && (await openChild(parent, childId, child, known));
      if (opened?.recorded.left === true && cancelReason() === undefined) works.push(work(child.key, opened));
      else others.push(opened === undefined ? one : { ...one, opened });
    }
    return others;
  };
  const start = async (): Promise<void> => {
    const waiting: WaitingChild[] = [];
    // On a resume, recorded ends first: a recorded failure must cancel the rest before they are resumed.
    for (const child of children) {
      const childId = childRunId(parent.at.runId, stepId, child.key);
      const known = followed === undefined ? undefined : await childRow(parent, childId);
      const end = known === undefined ? undefined : await loadChildEnd(store, known);
      if (end === undefined) waiting.push({ child, childId, known });
      else onEnd(child.key, end);
    }
    if (followed === undefined) return await begin(waiting);
    const others = await follow(waiting);
    await followed();
    await begin(others);
  };

  const listener = { controlChanged: cancelRest };
  control.listener = listener;
  try {
    await start();
  } catch (thrown) {
    onFault(thrown);
  }
  // Not before: a child that is not running yet has work.
  const rest = { kind: "children" } as const;
  tree.rest(rest);
  await Promise.all(works);
  tree.wake(rest);
  if (control.listener === listener) control.listener = undefined;
  if (fault !== undefined) throw fault.thrown;
  return Object.fromEntries(
    children.flatMap(({ key }) => {
      const end = settled.get(key);
      return end === undefined ? [] : [[key, end] as const];
    }),
  );
}

/** Why the end of a child ends the others; undefined if it does not. */
function decidedBy({ onFailure, failed }: RunChildrenOptions, key: string, end: RunEnd): SluiceError | undefined {
  const isFailure = end.status !== "completed" || failed(end);
  if (onFailure === "cancel" && isFailure)
    return new SluiceError("Cancellation", "sibling_failed", `cancelled because its sibling ${key} failed`);
  if (onFailure === "any" && !isFailure)
    return new SluiceError("Cancellation", "sibling_completed", `cancelled because its sibling ${key} completed first`);
  return undefined;
}
