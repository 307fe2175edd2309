import type { JournalStore } from "./store.ts";

/** Takes a fault that concerns no caller: a listener that threw, a lock that could not be given back. */
export type Report = (fault: unknown) => void;

/** Tells many listeners that the store changed: once in a turn of the event loop, however many commits it made. */
export interface Changes {
  /** Returns the unsubscriber. A listener that throws is reported and told no more. */
  watch(listener: () => void): () => void;
  /** The same for whoever waits for something: it is told too when the store is closed, since nothing comes any more. */
  await(listener: () => void): () => void;
  /** Says that the store was closed; nobody is told of anything afterwards. */
  close(): void;
}

interface Listener {
  readonly tell: () => void;
  readonly waits: boolean;
}

export function createChanges(store: JournalStore, report: Report): Changes {
  const listeners = new Set<Listener>();
  let unsubscribe: (() => void) | undefined;
  let due = false;
  let closed = false;

  const tell = (told: readonly Listener[]): void => {
    for (const listener of told) {
      // One that was unsubscribed by another a moment ago is not told.
      if (!listeners.has(listener)) continue;
      try {
        listener.tell();
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
    watch: (listener) => add({ tell: listener, waits: false }),
    await: (listener) => add({ tell: listener, waits: true }),
    close() {
      closed = true;
      tell([...listeners].filter((listener) => listener.waits));
      for (const listener of [...listeners]) drop(listener);
    },
  };
}

/** Runs `look` when asked; asked again while it looks, it looks once more afterwards. `look` must not reject. */
export function oneAtATime(look: () => Promise<void>): () => void {
  let looking = false;
  let again = false;
  const run = async (): Promise<void> => {
    looking = true;
    do {
      again = false;
      await look();
    } while (again);
    looking = false;
  };
  return () => {
    if (looking) again = true;
    else void run();
  };
}
