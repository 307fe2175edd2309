import type { JournalStore } from "../store/journal-store.ts";

/** Takes a fault that concerns no caller: a listener that threw, a lock that could not be given back. */
export type Report = (fault: unknown) => void;

/** Tells many listeners that the store changed: once in a turn of the event loop, however many commits it made. */
export interface Changes {
  /** A listener that throws is reported and told no more. */
  add(listener: ChangeListener): void;
  drop(listener: ChangeListener): void;
  /** The same with a function. Returns the unsubscriber. */
  watch(listener: () => void): () => void;
  /** The same for whoever waits for something: it is told too when the store is closed, since nothing comes any more. */
  await(listener: () => void): () => void;
  /** Says that the store was closed; nobody is told of anything afterwards. */
  close(): void;
}

export interface ChangeListener {
  storeChanged(): void;
  /** Whether it is told when the store is closed, too. */
  readonly waits: boolean;
}

export function createChanges(store: JournalStore, report: Report): Changes {
  const listeners = new Set<ChangeListener>();
  let unsubscribe: (() => void) | undefined;
  let due = false;
  let closed = false;

  const tell = (told: readonly ChangeListener[]): void => {
    for (const listener of told) {
      // One that was unsubscribed by another a moment ago is not told.
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
    if (due) return;
    due = true;
    setImmediate(() => {
      due = false;
      if (!closed) tell([...listeners]);
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
      tell([...listeners].filter((listener) => listener.waits));
      for (const listener of [...listeners]) drop(listener);
    },
  };
}

export interface Coalescer {
  /** Must not reject. */
  look(): Promise<void>;
}

/** Looks when asked; asked again while it looks, it looks once more afterwards. */
export class CoalescedWork {
  readonly #looker: Coalescer;
  #looking = false;
  #again = false;

  constructor(looker: Coalescer) {
    this.#looker = looker;
  }

  ask(): void {
    if (this.#looking) this.#again = true;
    else void this.#run();
  }

  async #run(): Promise<void> {
    this.#looking = true;
    do {
      this.#again = false;
      await this.#looker.look();
    } while (this.#again);
    this.#looking = false;
  }
}
