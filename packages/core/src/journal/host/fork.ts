import { SluiceError } from "../../base/errors.ts";
import type { ChildRun, JournalRecord, RunChildrenOptions, RunEnd, SiblingEnd } from "../seam.ts";
import { childKeys, childRunId } from "../step-id.ts";
import type { RunRow } from "../store/journal-store.ts";
import type { ActiveRun, ChildTask } from "./active-run.ts";
import { loadChildEnd } from "./recorded-steps.ts";

/** Refuses children that a resume could not tell apart, or that are not the recorded ones. */
export function checkChildren(
  runId: string,
  stepId: string,
  children: readonly ChildRun[],
  known: JournalRecord | undefined,
): void {
  const keys = children.map((child) => child.key);
  const seen = new Set<string>();
  const wrong = keys.find((key) => key === "" || key.includes("/") || seen.size === seen.add(key).size);
  if (wrong !== undefined) {
    const rule = "keys are unique, not empty and without slashes";
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
export async function childRow(parent: ActiveRun, childId: string): Promise<RunRow | undefined> {
  const row = await parent.store.run(childId);
  if (row === undefined || row.parentId === parent.at.runId) return row;
  const rule = "step ids and keys must not form the same id";
  throw new SluiceError(
    "Host",
    "run_exists",
    `a run ${childId} already exists and is not a child of ${parent.at.runId}; ${rule}`,
  );
}

/** Runs all children concurrently and always waits for every one. */
export async function runChildren(
  parent: ActiveRun,
  stepId: string,
  children: readonly ChildRun[],
  options: RunChildrenOptions,
  fresh: boolean,
): Promise<Readonly<Record<string, SiblingEnd>>> {
  const { control, tree } = parent;
  const settled = new Map<string, SiblingEnd>();
  const running = new Map<string, ChildTask>();
  let failedKey: string | undefined;
  let fault: { readonly thrown: unknown } | undefined;

  /** Why the running children have to end, if they do. */
  const cancelReason = (): SluiceError | undefined =>
    control.cancelled ?? (failedKey === undefined ? undefined : siblingFailed(failedKey));
  const cancelRest = (): void => {
    const reason = cancelReason();
    if (reason !== undefined) for (const task of running.values()) task.cancel(reason);
  };
  /** A fault in one journal stops the whole tree, whose runs can be resumed. */
  const onFault = (thrown: unknown): void => {
    fault ??= { thrown };
    tree.stop(thrown);
  };
  const onEnd = (key: string, end: SiblingEnd): void => {
    settled.set(key, end);
    if (failedKey !== undefined || options.onFailure !== "cancel" || !isFailure(options, end)) return;
    failedKey = key;
    cancelRest();
  };
  const work = async (key: string, task: ChildTask): Promise<void> => {
    running.set(key, task);
    // The cancel may have come while its journal was opened.
    cancelRest();
    try {
      const end = await task.end;
      running.delete(key);
      onEnd(key, end);
    } catch (thrown) {
      running.delete(key);
      onFault(thrown);
    }
  };

  const works: Promise<void>[] = [];
  const start = async (): Promise<void> => {
    const waiting: ChildRun[] = [];
    // On a resume, recorded ends first: a recorded failure must cancel the rest before they are resumed.
    for (const child of children) {
      const known = fresh ? undefined : await childRow(parent, childRunId(parent.at.runId, stepId, child.key));
      const end = known === undefined ? undefined : await loadChildEnd(parent.store, known);
      if (end === undefined) waiting.push(child);
      else onEnd(child.key, end);
    }
    for (const child of waiting) {
      if (control.stopped !== undefined) throw control.stopped;
      const reason = cancelReason();
      if (reason !== undefined) {
        onEnd(child.key, await tree.closeChild(parent, stepId, child, reason.message));
        continue;
      }
      const opened = await tree.openChild(parent, stepId, child, fresh);
      if ("ended" in opened) onEnd(child.key, opened.ended);
      else works.push(work(child.key, opened));
    }
  };

  const listener = { controlChanged: cancelRest };
  control.listen(listener);
  try {
    await start();
  } catch (thrown) {
    onFault(thrown);
  }
  await Promise.all(works);
  control.unlisten(listener);
  if (fault !== undefined) throw fault.thrown;
  return Object.fromEntries(
    children.flatMap(({ key }) => {
      const end = settled.get(key);
      return end === undefined ? [] : [[key, end] as const];
    }),
  );
}

function isFailure(options: RunChildrenOptions, end: RunEnd): boolean {
  return end.status !== "completed" || options.failed(end);
}

function siblingFailed(key: string): SluiceError {
  return new SluiceError("Cancellation", "sibling_failed", `cancelled because its sibling ${key} failed`);
}
