import type { JournalStore, StoreChange } from "../store/journal-store.ts";

/** Reports a fault that no caller can handle. */
export type Report = (fault: unknown) => void;

/** Notifies of store changes, at most once per turn of the event loop. */
export interface Changes {
  /** A listener that throws is reported and removed. */
  watch(listener: ChangeListener): void;
  unwatch(listener: ChangeListener): void;
  /** A wait for changes, which also ends when `signal` aborts and when the store is closed. */
  waiter(signal?: AbortSignal): ChangeWaiter;
  /** Ends all notifications. */
  close(): void;
}

export interface ChangeWaiter {
  /** The next change from now on: ask for it, look, then await it. */
  next(): Promise<void>;
  /** Settles when `signal` aborts. */
  readonly aborted: Promise<void>;
  close(): void;
}

/** An object and not a function, so that a run can listen without a closure of its own. */
export interface ChangeListener {
  storeChanged(what: StoreChange): void;
  /** Whether it is also called when the store is closed. */
  readonly waits?: true;
  /** Whether it is not called for records: most listeners are runs, and most changes are records of runs. */
  readonly skipsRecords?: true;
}

export function createChanges(store: JournalStore, report: Report): Changes {
  const listeners = new Set<ChangeListener>();
  /** How many of them are called for records. */
  let readers = 0;
  let unsubscribe: (() => void) | undefined;
  let scheduled: StoreChange | undefined;
  let closed = false;

  const notify = (called: readonly ChangeListener[], what: StoreChange): void => {
    for (const listener of called) {
      // An earlier listener may have removed it.
      if (!listeners.has(listener) || (what === "records" && listener.skipsRecords === true)) continue;
      try {
        listener.storeChanged(what);
      } catch (thrown) {
        unwatch(listener);
        report(thrown);
      }
    }
  };
  const onStoreChange = (what: StoreChange = "any"): void => {
    if (what === "records" && readers === 0) return;
    const isFirst = scheduled === undefined;
    if (isFirst || what === "any") scheduled = what;
    if (!isFirst) return;
    setImmediate(() => {
      const since = scheduled ?? "any";
      scheduled = undefined;
      if (!closed) notify([...listeners], since);
    });
  };
  const unwatch = (listener: ChangeListener): void => {
    if (!listeners.delete(listener)) return;
    if (listener.skipsRecords !== true) readers -= 1;
    if (listeners.size > 0) return;
    unsubscribe?.();
    unsubscribe = undefined;
  };
  const watch = (listener: ChangeListener): void => {
    if (!closed) unsubscribe ??= store.onChange(onStoreChange);
    if (listener.skipsRecords !== true && !listeners.has(listener)) readers += 1;
    listeners.add(listener);
  };

  return {
    watch,
    unwatch,
    waiter(signal) {
      let wake: (() => void) | undefined;
      const aborted = Promise.withResolvers<void>();
      const nudge = (): void => wake?.();
      const onAbort = (): void => {
        aborted.resolve();
        nudge();
      };
      const listener: ChangeListener = { storeChanged: nudge, waits: true };
      watch(listener);
      signal?.addEventListener("abort", onAbort, { once: true });
      if (signal?.aborted === true) onAbort();
      return {
        aborted: aborted.promise,
        next: () =>
          new Promise((resolve) => {
            wake = resolve;
          }),
        close() {
          unwatch(listener);
          signal?.removeEventListener("abort", onAbort);
        },
      };
    },
    close() {
      closed = true;
      notify(
        [...listeners].filter(({ waits = false }) => waits),
        "any",
      );
      for (const listener of [...listeners]) unwatch(listener);
    },
  };
}

/** Runs `work`, which must not reject, on request: one run at a time, and requests during a run cause one more. */
export class Coalesced {
  readonly #work: () => Promise<void>;
  #isRunning = false;
  #again = false;

  constructor(work: () => Promise<void>) {
    this.#work = work;
  }

  request(): void {
    if (this.#isRunning) this.#again = true;
    else void this.#run();
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    do {
      this.#again = false;
      await this.#work();
    } while (this.#again);
    this.#isRunning = false;
  }
}
