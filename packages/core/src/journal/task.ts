import type { Clock } from "../base/clock.ts";
import { isSluiceError, SluiceError } from "../base/errors.ts";
import type { Json } from "../base/json.ts";
import { type Changes, oneAtATime, type Report } from "./changes.ts";
import { LIFE, NO_ORDINAL } from "./life.ts";
import type { Past } from "./past.ts";
import type { RunEnd, RunTask, SuspendReason } from "./seam.ts";
import { SUSPENDED } from "./step-call.ts";
import type { JournalStore } from "./store.ts";
import { type CancelRequest, closeOwnerless } from "./takeover.ts";
import type { Tree } from "./tree.ts";
import { appendRecord, type RunPosition } from "./writer.ts";

/** A root run at work in this host. */
export interface HostTask extends RunTask {
  cancel(request: CancelRequest): void;
}

export interface TaskOptions {
  readonly store: JournalStore;
  readonly clock: Clock;
  readonly changes: Changes;
  readonly report: Report;
  readonly tree: Tree;
  readonly at: RunPosition;
  readonly past: Past;
  readonly input: Json;
  /** The run does not belong to this host any more. */
  readonly onReleased: () => void;
  readonly incarnation: () => string;
}
type TaskEnd = Awaited<RunTask["settled"]>;

/**
 * How long the end of a task waits for code that was told to stop; whatever still works then keeps the lock alone. Short,
 * since a cancel has to return within 100 ms, and the run may have given a tool half of that already.
 */
const MOMENT_MS = 40;

/** Works on a run until it ends, is suspended or cannot go on here, and then gives it up. */
export function startTask({ past, input, ...options }: TaskOptions): HostTask {
  const { store, clock, changes, report, tree, at, onReleased, incarnation } = options;
  const { rootId } = tree;
  let suspension: { readonly reason: SuspendReason; readonly error: SluiceError } | undefined;
  let over = false;

  /** What others did to the run: asked for its end, or took it. */
  const look = oneAtATime(async () => {
    try {
      const row = over ? undefined : await store.run(rootId);
      if (over) return;
      if (row?.cancel !== undefined) tree.cancel(row.cancel);
      if (row?.owner?.id !== store.ownerId) {
        tree.stop(new SluiceError("Host", "ownership_lost", `run ${rootId} was taken over by another process`));
      }
    } catch (thrown) {
      // A store that cannot be read any more cannot hold this run's next record either.
      tree.stop(thrown);
    }
  });

  const work = async (): Promise<TaskEnd> => {
    const stopWatching = changes.watch(() => {
      tree.signalled();
      look();
    });
    try {
      // What was asked for before this was listening.
      look();
      return { end: await tree.work(at, past, input) };
    } catch (thrown) {
      if (suspension === undefined || thrown !== suspension.error) throw thrown;
      const { reason } = suspension;
      const record = { ordinal: NO_ORDINAL, stepId: LIFE.suspend, phase: "life" as const, value: "" };
      await appendRecord(store, at, { ...record, events: [{ type: "run.suspended", data: { reason } }] }, clock);
      return { suspended: reason };
    } finally {
      stopWatching();
    }
  };

  /** Gives the run up. Whoever asked for its end meanwhile was told that its owner would see to it. */
  const release = async (ended: boolean): Promise<RunEnd | undefined> => {
    try {
      await store.release(rootId);
      if (ended || (await store.run(rootId))?.cancel === undefined) return undefined;
      return await closeOwnerless({ store, clock, rootId, incarnation });
    } catch (thrown) {
      // The run is what its journal says; the lock goes with the process, and is gone when the store was closed.
      if (!isSluiceError(thrown, "store_closed")) report(thrown);
      return undefined;
    } finally {
      onReleased();
    }
  };
  const letGo = async (ended: boolean): Promise<RunEnd | undefined> => {
    const held = tree.held();
    if (held === undefined) return await release(ended);
    let disarm: (() => void) | undefined;
    const moment = new Promise<undefined>((resolve) => {
      disarm = clock.after(MOMENT_MS, () => resolve(undefined));
    });
    const released = held.then(() => {
      disarm?.();
      return release(ended);
    });
    return await Promise.race([released, moment]);
  };

  const finish = async (): Promise<TaskEnd> => {
    let outcome: TaskEnd | { readonly fault: unknown };
    try {
      outcome = await work();
    } catch (thrown) {
      outcome = { fault: thrown };
    }
    over = true;
    const closed = await letGo("end" in outcome);
    if ("fault" in outcome) throw outcome.fault;
    return closed === undefined ? outcome : { end: closed };
  };

  const settled = finish();
  // Whoever never looks at a run that cannot go on must not bring the process down; whoever does still sees the rejection.
  settled.catch(() => undefined);
  return {
    runId: rootId,
    settled,
    suspend: async (reason) => {
      if (suspension === undefined) {
        const message = `run ${rootId} was suspended here (${reason}); it can be resumed`;
        suspension = { reason, error: new SluiceError("Host", SUSPENDED, message) };
        tree.stop(suspension.error);
      }
      await settled;
    },
    onLive: tree.onLive,
    cancel: tree.cancel,
  };
}
