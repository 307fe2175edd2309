import type { Clock } from "../base/clock.ts";
import { SluiceError } from "../base/errors.ts";
import { createHost } from "../journal/host/host.ts";
import type { JournalRecord } from "../journal/seam.ts";
import type { JournalStore } from "../journal/store/journal-store.ts";
import type { ConformanceHost, OpenConformanceStore, WriteDecision } from "./harness.ts";

export interface SharedJournals {
  /** Opens the same journals for another owner. */
  connect(): Promise<JournalStore> | JournalStore;
  dispose?(): Promise<void>;
}

/** Adapts a JournalStore to the suite: each connection is Sluice's host on it, with injected faults. */
export function overJournalStore(open: () => Promise<SharedJournals> | SharedJournals): OpenConformanceStore {
  return async (clock) => {
    const journals = await open();
    return {
      async connect() {
        const { store, crash, ...control } = await faultyStore(journals);
        const own = ownTimers(clock);
        return {
          host: createHost(store, { clock: own.clock }),
          ...control,
          async crash() {
            own.stop();
            await crash();
          },
        };
      },
      dispose: async () => await journals.dispose?.(),
    };
  };
}

/** A clock whose timers are disarmed when their process crashes. */
function ownTimers(clock: Clock): { readonly clock: Clock; stop(): void } {
  const disarms = new Set<() => void>();
  let stopped = false;
  return {
    clock: {
      now: clock.now,
      after(ms, fn) {
        if (stopped) return () => undefined;
        const clear = (): void => {
          disarms.delete(clear);
          disarm();
        };
        const disarm = clock.after(ms, () => {
          disarms.delete(clear);
          fn();
        });
        disarms.add(clear);
        return clear;
      },
    },
    stop() {
      stopped = true;
      for (const disarm of [...disarms]) disarm();
    },
  };
}

interface FaultyStore extends Omit<ConformanceHost, "host"> {
  readonly store: JournalStore;
}

/** A store with faults that a test controls. */
async function faultyStore(journals: SharedJournals): Promise<FaultyStore> {
  const first = await journals.connect();
  const listeners = new Set<() => void>();
  let target = first;
  let decide: WriteDecision | undefined;
  let change: ((runId: string, records: readonly JournalRecord[]) => readonly JournalRecord[]) | undefined;

  const notify = (): void => {
    for (const listener of [...listeners]) listener();
  };
  let unsubscribe: (() => void) | undefined;
  const subscribe = (): void => {
    unsubscribe?.();
    unsubscribe = listeners.size === 0 ? undefined : target.onChange(notify);
  };
  let muted = false;

  /** Writes a record as `decide` demands. */
  const written = async <T>(
    runId: string,
    { stepId, phase }: JournalRecord,
    write: () => Promise<T> | T,
  ): Promise<T> => {
    const fault = await decide?.({ runId, stepId, phase });
    const error = new SluiceError("Host", "store_io", `the disk failed at ${phase} ${stepId} of ${runId}`);
    if (fault === "before") throw error;
    const result = await write();
    if (fault === "after") throw error;
    return result;
  };

  const store: JournalStore = {
    ownerId: first.ownerId,
    ...(first.folder === undefined ? {} : { folder: first.folder }),
    // Without `decide`, calls pass through, so synchronous stores stay synchronous.
    create: (run, commit) =>
      decide === undefined
        ? target.create(run, commit)
        : written(run.runId, commit.record, () => target.create(run, commit)),
    append: (commit) =>
      decide === undefined ? target.append(commit) : written(commit.runId, commit.record, () => target.append(commit)),
    createWhole: async (runs) => {
      const last = runs[0]?.records.at(-1);
      const write = (): Promise<void> | void => target.createWhole(runs);
      if (last === undefined) await write();
      else await written(runs[0]?.row.runId ?? "", last, write);
    },
    claim: (rootId) => target.claim(rootId),
    release: (rootId) => target.release(rootId),
    run: (runId) => target.run(runId),
    runs: (rootId, limit) => target.runs(rootId, limit),
    remove: (rootIds) => target.remove(rootIds),
    records: async (runId, from, limit) => {
      const records = await target.records(runId, 0);
      return (change?.(runId, records) ?? records).slice(from, limit === undefined ? undefined : from + limit);
    },
    due: (now, limit) => target.due(now, limit),
    nextWake: (now) => target.nextWake(now),
    putSignal: (runId, message, at) => target.putSignal(runId, message, at),
    signals: (runId, name) => target.signals(runId, name),
    requestCancel: (runId, reason, by, at) => target.requestCancel(runId, reason, by, at),
    requests: (rootId) => target.requests(rootId),
    onChange(listener) {
      const own = (): void => listener();
      listeners.add(own);
      if (listeners.size === 1 && !muted) subscribe();
      return () => {
        listeners.delete(own);
        if (listeners.size === 0) subscribe();
      };
    },
    close: () => target.close(),
  };
  return {
    store,
    crash: async () => await target.close(),
    async loseLock() {
      muted = true;
      unsubscribe?.();
      unsubscribe = undefined;
      // Checks that were scheduled before the lock was lost run first.
      for (let turn = 0; turn < 5; turn += 1) await new Promise<void>((resolve) => setImmediate(resolve));
      // Later writes come from an owner that holds no claim, as with a lost lock.
      target = await journals.connect();
      await first.close();
      return () => {
        muted = false;
        subscribe();
        notify();
      };
    },
    failWrites: (next) => {
      decide = next;
    },
    tamper: (next) => {
      change = next;
    },
  };
}
