import { SluiceError } from "../base/errors.ts";
import type { ChildRun, ForkOptions, RunEnd, Settled } from "./seam.ts";
import type { RunAtWork } from "./step-runner.ts";

/** One child at work, as its parent sees it. */
export interface ChildTask {
  readonly end: Promise<Settled>;
  cancel(reason: SluiceError): void;
}

/** How a host starts children; the same for every host that keeps journals in a JournalStore. */
export interface ForkHost {
  /** Starts a child that was never started, or takes up one that was; `fresh` says that none of this fork was. */
  open(parent: RunAtWork, childId: string, child: ChildRun, fresh: boolean): Promise<ChildTask | { readonly ended: Settled }>;
  /** Ends a child that does not work here as cancelled, without running its code. */
  cancelIdle(parent: RunAtWork, childId: string, child: ChildRun, reason: string): Promise<Settled>;
}

/** Runs all children side by side and waits for every one: a sibling that was cancelled is drained before the fork joins. */
export async function runFork(
  parent: RunAtWork,
  stepId: string,
  children: readonly ChildRun[],
  options: ForkOptions,
  fresh: boolean,
): Promise<Record<string, Settled>> {
  const settled = new Map<string, Settled>();
  const working = new Map<string, ChildTask>();
  let failure: { readonly key: string } | undefined;
  let fault: { readonly thrown: unknown } | undefined;

  const cancelRest = (reason: SluiceError): void => {
    for (const task of working.values()) task.cancel(reason);
  };
  const onEnd = (key: string, end: Settled): void => {
    settled.set(key, end);
    working.delete(key);
    if (failure === undefined && options.onFailure === "cancel" && isFailure(options, end)) {
      failure = { key };
      cancelRest(siblingFailed(key));
    }
  };
  const onParentCancel = (): void => cancelRest(cancelReason(parent));

  parent.cancelled.signal.addEventListener("abort", onParentCancel, { once: true });
  try {
    const waits: Promise<void>[] = [];
    const waiting: ChildRun[] = [];
    // On resume, ends first: what an earlier process saw fail must cancel the rest before they are taken up again.
    for (const child of children) {
      const childId = `${parent.at.runId}/${stepId}/${child.key}`;
      const known = fresh ? undefined : await parent.store.run(childId);
      if (known?.end === undefined) waiting.push(child);
      else onEnd(child.key, { ...known.end, records: known.records, head: known.head });
    }
    for (const child of waiting) {
      const childId = `${parent.at.runId}/${stepId}/${child.key}`;
      if (failure !== undefined || parent.cancelled.signal.aborted) {
        const reason = failure === undefined ? cancelReason(parent) : siblingFailed(failure.key);
        onEnd(child.key, await parent.forks.cancelIdle(parent, childId, child, reason.message));
        continue;
      }
      const opened = await parent.forks.open(parent, childId, child, fresh);
      if ("ended" in opened) {
        onEnd(child.key, opened.ended);
        continue;
      }
      working.set(child.key, opened);
      waits.push(
        opened.end.then(
          (end) => onEnd(child.key, end),
          (thrown) => {
            working.delete(child.key);
            // A fault in one journal stops the tree here; every run of it stays resumable.
            if (fault === undefined) {
              fault = { thrown };
              parent.stopped.abort(thrown);
            }
          },
        ),
      );
    }
    await Promise.all(waits);
  } finally {
    parent.cancelled.signal.removeEventListener("abort", onParentCancel);
  }
  if (fault !== undefined) throw fault.thrown;
  const inOrder: Record<string, Settled> = {};
  for (const child of children) {
    const end = settled.get(child.key);
    if (end !== undefined) inOrder[child.key] = end;
  }
  return inOrder;
}

function isFailure(options: ForkOptions, end: RunEnd): boolean {
  return end.status !== "completed" || options.failed(end);
}

function siblingFailed(key: string): SluiceError {
  return new SluiceError("Cancellation", "sibling_failed", `cancelled because its sibling ${key} failed`);
}

function cancelReason(parent: RunAtWork): SluiceError {
  const reason: unknown = parent.cancelled.signal.reason;
  return reason instanceof SluiceError ? reason : new SluiceError("Cancellation", "run_cancelled", "the run was cancelled");
}
