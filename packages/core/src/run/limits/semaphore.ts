/** Places for stages at work: at most so many in one session, whatever runs they belong to. First come, first served. */
export interface Slots {
  readonly size: number;
  /** Waits for a place. Undefined when the signal aborted first. */
  take(signal: AbortSignal): Promise<Slot | undefined>;
}
export interface Slot {
  /** Gives the place free; calling it again does nothing. */
  free(): void;
}

// Not p-queue: a place is held by a stage and given free while it waits, which a queue of functions can only imitate with
// one promise more for each, and the usual case, a place that is free, has to cost nothing.

export function createSlots(size: number): Slots {
  const waiting = new Set<() => void>();
  let taken = 0;

  const freed = (): void => {
    taken -= 1;
    const [next] = waiting;
    next?.();
  };
  const slot = (): Slot => {
    taken += 1;
    return new TakenSlot(freed);
  };
  const wait = (signal: AbortSignal): Promise<Slot | undefined> =>
    new Promise((resolve) => {
      const settle = (given: Slot | undefined): void => {
        waiting.delete(turn);
        signal.removeEventListener("abort", onAbort);
        resolve(given);
      };
      const turn = (): void => settle(slot());
      const onAbort = (): void => settle(undefined);
      waiting.add(turn);
      signal.addEventListener("abort", onAbort, { once: true });
    });

  return {
    size,
    take: async (signal) => {
      if (signal.aborted) return undefined;
      return taken < size && waiting.size === 0 ? slot() : await wait(signal);
    },
  };
}

class TakenSlot implements Slot {
  #freed: (() => void) | undefined;

  constructor(freed: () => void) {
    this.#freed = freed;
  }

  free(): void {
    const freed = this.#freed;
    this.#freed = undefined;
    freed?.();
  }
}
