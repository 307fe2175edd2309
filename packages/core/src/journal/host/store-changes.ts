import type { JournalStore } from "../store/journal-store.ts";

/** Reports a fault that no caller can handle. */
export type Report = (fault: unknown) => void;

/** Notifies of store changes, at most once per turn of the event loop. */
export interface Changes {
  /** Returns the unsubscriber. A listener that throws is reported and removed. */
  watch(listener: () => void): () => void;
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

interface Listener {
  readonly call: () => void;
  /** Whether it is also called when the store is closed. */
  readonly waits: boolean;
}

export function createChanges(store: JournalStore, report: Report): Changes {
  const listeners = new Set<Listener>();
  let unsubscribe: (() => void) | undefined;
  let scheduled = false;
  let closed = false;

  const notify = (called: readonly Listener[]): void => {
    for (const listener of called) {
      // An earlier listener may have removed it.
      if (!listeners.has(listener)) continue;
      try {
        listener.call();
      } catch (thrown) {
        drop(listener);
        report(thrown);
      }
    }
  };
  const onStoreChange = (): void => {
    if (scheduled) return;
    scheduled = true;
    setImmediate(() => {
      scheduled = false;
      if (!closed) notify([...listeners]);
    });
  };
  const drop = (listener: Listener): void => {
    if (!listeners.delete(listener) || listeners.size > 0) return;
    unsubscribe?.();
    unsubscribe = undefined;
  };
  const add = (listener: Listener): (() => void) => {
    if (!closed) unsubscribe ??= store.onChange(onStoreChange);
    listeners.add(listener);
    return () => drop(listener);
  };

  return {
    watch: (call) => add({ call, waits: false }),
    waiter(signal) {
      let wake: (() => void) | undefined;
      const aborted = Promise.withResolvers<void>();
      const nudge = (): void => wake?.();
      const onAbort = (): void => {
        aborted.resolve();
        nudge();
      };
      const remove = add({ call: nudge, waits: true });
      signal?.addEventListener("abort", onAbort, { once: true });
      if (signal?.aborted === true) onAbort();
      return {
        aborted: aborted.promise,
        next: () =>
          new Promise((resolve) => {
            wake = resolve;
          }),
        close() {
          remove();
          signal?.removeEventListener("abort", onAbort);
        },
      };
    },
    close() {
      closed = true;
      notify([...listeners].filter((listener) => listener.waits));
      for (const listener of [...listeners]) drop(listener);
    },
  };
}

/** A function that requests a run of `work`, which must not reject: one run at a time, and requests during a run cause one more. */
export function coalesced(work: () => Promise<void>): () => void {
  let running = false;
  let again = false;
  const run = async (): Promise<void> => {
    running = true;
    do {
      again = false;
      await work();
    } while (again);
    running = false;
  };
  return () => {
    if (running) again = true;
    else void run();
  };
}
