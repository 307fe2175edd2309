import { randomBytes } from "node:crypto";
import { setMaxListeners } from "node:events";
import { type Clock, systemClock } from "../base/clock.ts";
import { isSluiceError, SluiceError } from "../base/errors.ts";
import { followEvents, readJournal, summarise } from "./reading.ts";
import type {
  ChildRun,
  LiveChunk,
  NewRun,
  ProgramEnd,
  RunEnd,
  RunHost,
  RunProgram,
  RunTask,
  Settled,
  SuspendReason,
} from "./seam.ts";
import { createStepRunner, type RunAtWork } from "./step-runner.ts";
import type { JournalStore } from "./store.ts";
import { cancelRun, cancelTree } from "./takeover.ts";
import { checkChain } from "./verify.ts";
import { appendRecord, draftCommit, type RunPosition, startOf } from "./writer.ts";

export interface HostOptions {
  readonly clock?: Clock;
}

/** A run of this process with everything below it: owned, stopped and released as one. */
interface Tree {
  readonly rootId: string;
  readonly program: RunProgram;
  readonly stopped: AbortController;
  readonly rootCancelled: AbortController;
  readonly onSignal: Set<() => void>;
  readonly onLive: Set<(chunk: LiveChunk) => void>;
  readonly holds: Set<Promise<unknown>>;
}
type TaskEnd = { readonly end: RunEnd } | { readonly suspended: SuspendReason };

/** The host over any JournalStore: everything about runs that does not depend on where records are kept. */
export function createHost(store: JournalStore, options: HostOptions = {}): RunHost {
  const clock = options.clock ?? systemClock;
  const trees = new Map<string, { readonly tree: Tree; readonly task: RunTask }>();
  const watchers = new Set<() => void>();
  let unwatch: (() => void) | undefined;
  let checking = false;

  /** One look at the store however many changes came together. */
  const onStoreChange = (): void => {
    if (checking) return;
    checking = true;
    queueMicrotask(() => {
      checking = false;
      for (const watcher of watchers) watcher();
    });
  };
  const watch = (listener: () => void): (() => void) => {
    watchers.add(listener);
    unwatch ??= store.onChange(onStoreChange);
    return () => {
      watchers.delete(listener);
      if (watchers.size > 0) return;
      unwatch?.();
      unwatch = undefined;
    };
  };

  const newTree = (rootId: string, program: RunProgram): Tree => {
    const tree: Tree = {
      rootId,
      program,
      stopped: new AbortController(),
      rootCancelled: new AbortController(),
      onSignal: new Set(),
      onLive: new Set(),
      holds: new Set(),
    };
    // One listener for each sibling at work is no leak.
    setMaxListeners(0, tree.stopped.signal, tree.rootCancelled.signal);
    return tree;
  };

  const runAtWork = (tree: Tree, at: RunPosition, past: RunAtWork["past"], cancelled: AbortController): RunAtWork => ({
    store,
    clock,
    at,
    past,
    cancelled,
    stopped: tree.stopped,
    onSignal: (listener) => {
      tree.onSignal.add(listener);
      return () => tree.onSignal.delete(listener);
    },
    emit: (chunk) => {
      for (const listener of tree.onLive) listener(chunk);
    },
    hold: (work) => {
      const drop = (): void => {
        tree.holds.delete(work);
      };
      tree.holds.add(work);
      work.then(drop, drop);
    },
    forks: {
      open: async (parent, childId, child, fresh) => {
        const own = new AbortController();
        setMaxListeners(0, own.signal);
        const opened = await openChild(tree, parent, childId, child, fresh);
        if ("ended" in opened) return opened;
        const end = program(tree, runAtWork(tree, opened.at, opened.past, own), child.input);
        return { end, cancel: (reason) => own.abort(reason) };
      },
      cancelIdle: async (parent, childId, child, reason) => {
        const opened = await openChild(tree, parent, childId, child, false);
        return "ended" in opened ? opened.ended : cancelRun(store, clock, opened.at, reason);
      },
    },
  });

  const openChild = async (
    tree: Tree,
    parent: RunAtWork,
    childId: string,
    child: ChildRun,
    fresh: boolean,
  ): Promise<{ at: RunPosition; past: RunAtWork["past"] } | { ended: Settled }> => {
    const { epoch, incarnation } = parent.at;
    const row = fresh ? undefined : await store.run(childId);
    if (row === undefined) {
      const start = startOf(childId, incarnation);
      const commit = draftCommit(start, startRecord(child.input, child.events), clock);
      const seed = { runId: childId, rootId: tree.rootId, parentId: parent.at.runId, createdAt: clock.now(), input: child.input };
      await store.create(seed, { ...commit, epoch });
      return { at: { ...start, epoch, seq: 1, head: commit.record.hash }, past: [] };
    }
    if (row.end !== undefined) return { ended: { ...row.end, records: row.records, head: row.head } };
    return await takeUp(childId, epoch, incarnation);
  };

  /** Reads what is there and checks that nobody changed it. */
  const takeUp = async (runId: string, epoch: number, incarnation: string): Promise<{ at: RunPosition; past: RunAtWork["past"] }> => {
    const past = await store.records(runId, 0);
    const checked = checkChain(runId, past);
    if (checked.fault !== undefined) {
      throw new SluiceError("Host", "journal_damaged", `run ${runId} is not resumed: ${checked.fault}`);
    }
    return { at: { runId, epoch, incarnation, seq: past.length, head: checked.head }, past };
  };

  /** Runs the program to its end and writes the end down. */
  const program = async (tree: Tree, run: RunAtWork, input: NewRun["input"]): Promise<Settled> => {
    const runner = createStepRunner(run);
    let ended: ProgramEnd;
    try {
      ended = await tree.program(runner.steps, input);
    } finally {
      runner.dispose();
    }
    const end: RunEnd = { status: ended.status, value: ended.value };
    const record = { ordinal: -1, stepId: "end", phase: "life" as const, value: JSON.stringify(end), events: ended.events, end };
    await appendRecord(store, run.at, record, clock);
    return { ...end, records: run.at.seq, head: run.at.head };
  };

  const work = (tree: Tree, at: RunPosition, past: RunAtWork["past"], input: NewRun["input"]): RunTask => {
    let suspending: SuspendReason | undefined;
    const stopWatching = watch(() => {
      for (const listener of [...tree.onSignal]) listener();
      void lookForCancel(tree);
    });
    const finish = async (): Promise<TaskEnd> => {
      try {
        const end = await program(tree, runAtWork(tree, at, past, tree.rootCancelled), input);
        return { end: { status: end.status, value: end.value } };
      } catch (thrown) {
        if (suspending === undefined || !isSluiceError(thrown, "run_stopped")) throw thrown;
        const events = [{ type: "run.suspended" as const, data: { reason: suspending } }];
        await appendRecord(store, at, { ordinal: -1, stepId: "suspend", phase: "life", value: "", events }, clock);
        return { suspended: suspending };
      } finally {
        stopWatching();
        await letGo(tree);
      }
    };
    const settled = finish();
    // Whoever never looks at a failed run must not bring the process down; whoever does still sees the rejection.
    settled.catch(() => undefined);
    const task: RunTask = {
      runId: tree.rootId,
      settled,
      suspend: async (reason) => {
        suspending ??= reason;
        tree.stopped.abort(new SluiceError("Host", "run_stopped", `run ${tree.rootId} was suspended (${reason}); it can be resumed`));
        await settled;
      },
      onLive: (listener) => {
        tree.onLive.add(listener);
        return () => tree.onLive.delete(listener);
      },
    };
    trees.set(tree.rootId, { tree, task });
    return task;
  };

  /** The run is over here; its lock stays while a tool that was given up still works. */
  const letGo = async (tree: Tree): Promise<void> => {
    trees.delete(tree.rootId);
    const release = async (): Promise<void> => await store.release(tree.rootId);
    if (tree.holds.size === 0) await release();
    else void Promise.allSettled([...tree.holds]).then(release);
  };

  const lookForCancel = async (tree: Tree): Promise<void> => {
    if (tree.rootCancelled.signal.aborted) return;
    try {
      const row = await store.run(tree.rootId);
      if (row?.cancel !== undefined) tree.rootCancelled.abort(cancelled(row.cancel.reason, row.cancel.by));
    } catch (thrown) {
      // A store that cannot be read any more can not hold this run's next record either.
      tree.stopped.abort(thrown);
    }
  };

  const host: RunHost = {
    ...(store.folder === undefined ? {} : { folder: store.folder }),
    async start({ runId, input, events, program: runProgram }) {
      const incarnation = newIncarnation();
      const start = startOf(runId, incarnation);
      const commit = draftCommit(start, startRecord(input, events), clock);
      const epoch = await store.create({ runId, rootId: runId, createdAt: clock.now(), input }, commit);
      return work(newTree(runId, runProgram), { ...start, epoch, seq: 1, head: commit.record.hash }, [], input);
    },

    async resume(runId, runProgram) {
      const row = await store.run(runId);
      if (row === undefined) throw new SluiceError("Session", "run_unknown", `there is no run ${runId} in this store`);
      if (row.rootId !== runId) {
        throw new SluiceError("Session", "run_is_child", `${runId} is part of run ${row.rootId}; resume that one`);
      }
      if (row.end !== undefined) throw new SluiceError("Session", "run_finished", `run ${runId} is ${row.end.status}; it cannot be resumed`);
      const epoch = await store.claim(runId);
      try {
        const incarnation = newIncarnation();
        const { at, past } = await takeUp(runId, epoch, incarnation);
        if (row.cancel !== undefined) {
          const end = await cancelTree(store, clock, at, row.cancel.reason);
          await store.release(runId);
          return { runId, settled: Promise.resolve({ end }), suspend: async () => undefined, onLive: () => () => undefined };
        }
        const events = [{ type: "run.resumed" as const, data: { incarnation } }];
        await appendRecord(store, at, { ordinal: -1, stepId: "resume", phase: "life", value: "", events }, clock);
        return work(newTree(runId, runProgram), at, past, row.input);
      } catch (thrown) {
        await store.release(runId);
        throw thrown;
      }
    },

    signal: async (runId, message) => await store.putSignal(runId, message, clock.now()),

    async cancel(runId, reason, by) {
      const row = await store.run(runId);
      if (row === undefined) return "unknown";
      if (row.rootId !== runId) throw new SluiceError("Session", "run_is_child", `${runId} is part of run ${row.rootId}; cancel that one`);
      if (row.end !== undefined) return "finished";
      const here = trees.get(runId);
      if (here !== undefined) {
        here.tree.rootCancelled.abort(cancelled(reason, by));
        return "requested";
      }
      await store.requestCancel(runId, reason, by, clock.now());
      if (row.owner?.live === true) return "requested";
      const epoch = await store.claim(runId);
      const { at } = await takeUp(runId, epoch, newIncarnation());
      await cancelTree(store, clock, at, reason);
      await store.release(runId);
      return "cancelled";
    },

    async result(runId, { signal } = {}) {
      return await new Promise<RunEnd>((resolve, reject) => {
        const stop = (): void => {
          unsubscribe();
          signal?.removeEventListener("abort", onAbort);
        };
        const onAbort = (): void => {
          stop();
          reject(new SluiceError("Cancellation", "wait_cancelled", `the wait for the end of run ${runId} was cancelled`));
        };
        const check = async (): Promise<void> => {
          try {
            const row = await store.run(runId);
            if (row === undefined) throw new SluiceError("Session", "run_unknown", `there is no run ${runId} in this store`);
            if (row.end === undefined) return;
            stop();
            resolve(row.end);
          } catch (thrown) {
            stop();
            reject(thrown);
          }
        };
        const unsubscribe = watch(() => void check());
        signal?.addEventListener("abort", onAbort, { once: true });
        if (signal?.aborted === true) onAbort();
        else void check();
      });
    },

    requests: async (runId) => await store.requests(runId),
    events: (runId, query = {}) => followEvents(store, watch, runId, query),
    async get(runId) {
      const row = await store.run(runId);
      return row === undefined ? undefined : await summarise(store, row);
    },
    list: async () => await Promise.all((await store.runs()).map((row) => summarise(store, row))),
    onChange: watch,
    journal: (runId) => readJournal(store, runId),

    async close() {
      const ending = [...trees.values()].map(({ task }) => task.suspend("interrupted"));
      await Promise.allSettled(ending);
      unwatch?.();
      unwatch = undefined;
      await store.close();
    },
  };
  return host;
}

function startRecord(input: NewRun["input"], events: NewRun["events"]) {
  return { ordinal: -1, stepId: "start", phase: "life" as const, value: JSON.stringify(input), events };
}

function newIncarnation(): string {
  return randomBytes(6).toString("hex");
}

function cancelled(reason: string, by: string): SluiceError {
  return new SluiceError("Cancellation", "run_cancelled", reason, { detail: { by } });
}
