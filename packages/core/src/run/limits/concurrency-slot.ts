import type { Stopwatch } from "./limits.ts";

/** One execution's place among the session's stages at work. Its clock and its run's go while it holds the place. */
export class ConcurrencySlot {
  readonly #slots: ConcurrencySlots;
  readonly #own: Stopwatch;
  readonly #run: Stopwatch;
  readonly #signal: AbortSignal;
  #slot: Slot | undefined;

  constructor(slots: ConcurrencySlots, own: Stopwatch, run: Stopwatch, signal: AbortSignal) {
    this.#slots = slots;
    this.#own = own;
    this.#run = run;
    this.#signal = signal;
  }

  async take(): Promise<void> {
    if (this.#slot !== undefined) return;
    this.#slot = await this.#slots.take(this.#signal);
    // A cancelled execution gets no place, and needs none to be taken down.
    if (this.#slot === undefined) return;
    this.#own.start();
    this.#run.start();
  }

  /** Waits for people, timers and joins happen without the place and outside every timeout. */
  async whileFree<T>(wait: () => Promise<T>): Promise<T> {
    this.leave();
    const value = await wait();
    await this.take();
    return value;
  }

  leave(): void {
    this.#giveUp()?.free();
  }

  /** Leaves, but lets nobody in before the end of this execution has been heard: that of a sibling may end all others. */
  leaveLast(): void {
    const held = this.#giveUp();
    if (held !== undefined) setImmediate(() => held.free());
  }

  #giveUp(): Slot | undefined {
    const held = this.#slot;
    if (held === undefined) return undefined;
    this.#own.stop();
    this.#run.stop();
    this.#slot = undefined;
    return held;
  }
}

/** Places for stages at work: at most so many in one session, whatever runs they belong to. First come, first served. */
export interface ConcurrencySlots {
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

export function createConcurrencySlots(size: number): ConcurrencySlots {
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
