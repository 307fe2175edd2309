import type { JournalStore } from "../store/journal-store.ts";

/** Reports a fault that no caller can handle. */
export type Report = (fault: unknown) => void;

/** Notifies listeners of store changes, at most once per turn of the event loop. */
export interface Changes {
  /** A listener that throws is reported and removed. */
  add(listener: ChangeListener): void;
  drop(listener: ChangeListener): void;
  /** Adds a function. Returns the unsubscriber. */
  watch(listener: () => void): () => void;
  /** Adds a function that is also called when the store is closed. Returns the unsubscriber. */
  await(listener: () => void): () => void;
  /** Ends all notifications. */
  close(): void;
}

export interface ChangeListener {
  storeChanged(): void;
  /** Whether it is also called when the store is closed. */
  readonly waits: boolean;
}

export function createChanges(store: JournalStore, report: Report): Changes {
  const listeners = new Set<ChangeListener>();
  let unsubscribe: (() => void) | undefined;
  let scheduled = false;
  let closed = false;

  const notify = (called: readonly ChangeListener[]): void => {
    for (const listener of called) {
      // An earlier listener may have removed it.
      if (!listeners.has(listener)) continue;
      try {
        listener.storeChanged();
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
  const drop = (listener: ChangeListener): void => {
    if (!listeners.delete(listener) || listeners.size > 0) return;
    unsubscribe?.();
    unsubscribe = undefined;
  };
  const add = (listener: ChangeListener): void => {
    if (!closed) unsubscribe ??= store.onChange(onStoreChange);
    listeners.add(listener);
  };
  const addFunction = (storeChanged: () => void, waits: boolean): (() => void) => {
    const listener = { storeChanged, waits };
    add(listener);
    return () => drop(listener);
  };

  return {
    add,
    drop,
    watch: (listener) => addFunction(listener, false),
    await: (listener) => addFunction(listener, true),
    close() {
      closed = true;
      notify([...listeners].filter((listener) => listener.waits));
      for (const listener of [...listeners]) drop(listener);
    },
  };
}

export interface Coalescer {
  /** Must not reject. */
  run(): Promise<void>;
}

/** Runs on request, one run at a time; requests during a run cause one more run. */
export class CoalescedWork {
  readonly #work: Coalescer;
  #running = false;
  #again = false;

  constructor(work: Coalescer) {
    this.#work = work;
  }

  request(): void {
    if (this.#running) this.#again = true;
    else void this.#run();
  }

  async #run(): Promise<void> {
    this.#running = true;
    do {
      this.#again = false;
      await this.#work.run();
    } while (this.#again);
    this.#running = false;
  }
}
