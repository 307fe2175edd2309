import { SluiceError } from "../../base/errors.ts";
import type { StepRunner } from "../../journal/seam.ts";
import type { Stopwatch } from "./limits.ts";

type SlotSteps = Pick<StepRunner, "recovering" | "beforeWork" | "whenInterrupted">;

/** The concurrency slot of one execution. Its stopwatches run only while it holds the slot. */
export class ConcurrencySlot implements SlotWait {
  readonly signal: AbortSignal;
  readonly #slots: ConcurrencySlots;
  readonly #watches: readonly Stopwatch[];
  readonly #steps: SlotSteps;
  #release: (() => void) | undefined;
  /** The wait for a slot, of which there is at most one. */
  #acquiring: Promise<void> | undefined;
  #isOver = false;
  /** How many attempts have ended, and how many waits of this one are open: it gets the slot again after the last one. */
  #attempts = 0;
  #waits = 0;
  /** Whether a call waits for the slot again. A field, since every call reads it. */
  isAwaited = false;

  constructor(slots: ConcurrencySlots, watches: readonly Stopwatch[], signal: AbortSignal, steps: SlotSteps) {
    this.signal = signal;
    this.#slots = slots;
    this.#watches = watches;
    this.#steps = steps;
  }

  /** What a person interrupted needs no slot to end either. */
  onOver(listener: () => void): () => void {
    this.signal.addEventListener("abort", listener, { once: true });
    const unsubscribe = this.#steps.whenInterrupted(listener);
    return () => {
      this.signal.removeEventListener("abort", listener);
      unsubscribe();
    };
  }

  /** A promise only if no slot is free. */
  acquire(): Promise<void> | void {
    if (this.#release !== undefined || this.#acquiring !== undefined) return this.#acquiring;
    // One that follows its records never waits: those that have a slot wait for it.
    if (this.#steps.recovering) {
      const { isFull } = this.#slots;
      this.#hold(this.#slots.take());
      this.#steps.beforeWork((recovered) => this.#keep(recovered), isFull);
      return;
    }
    const acquiring = this.#slots.acquire(this);
    if (!(acquiring instanceof Promise)) return this.#hold(acquiring);
    this.#acquiring = acquiring.then((release) => {
      this.#acquiring = undefined;
      this.#hold(release);
    });
    return this.#acquiring;
  }

  /** Before the execution works, it waits for the other runs without the slot, and then for one like any other. */
  async #keep(recovered: Promise<void>): Promise<void> {
    const isHeld = this.#release !== undefined;
    this.release();
    await recovered;
    if (isHeld && !this.#isOver) await this.acquire();
    // It may have ended while it waited.
    if (this.#isOver) this.release();
  }

  /** A cancelled execution gets no slot and needs none to finish. */
  #hold(release: (() => void) | undefined): void {
    this.#release = release;
    if (release === undefined) return;
    for (const watch of this.#watches) watch.start();
  }

  /**
   * Waits for people, timers and joins without holding the slot and outside every timeout. Throws Host `attempt_over` if the attempt
   * ended meanwhile, which may have another one behind it that holds the slot now.
   */
  async withSlotReleased<T>(wait: () => Promise<T>): Promise<T> {
    const attempts = this.#attempts;
    this.#waits += 1;
    this.release();
    // Also after a rejection, which its caller may handle.
    const [waited] = await Promise.allSettled([wait()]);
    if (attempts === this.#attempts) {
      this.#waits -= 1;
      if (this.#waits === 0 && !this.#isOver) {
        this.isAwaited = true;
        await this.acquire();
        this.isAwaited = false;
      }
    }
    if (this.#isOver) this.release();
    if (waited.status === "rejected") throw waited.reason;
    if (!this.#isOver && attempts === this.#attempts) return waited.value;
    throw new SluiceError("Host", "attempt_over", "the attempt ended while one of its calls was waiting");
  }

  /** An attempt has ended: its calls that still wait get no slot. */
  endAttempt(): void {
    this.#attempts += 1;
    this.#waits = 0;
    this.isAwaited = false;
  }

  /** Releases the slot for good. */
  end(): void {
    this.#isOver = true;
    this.release();
  }

  release(): void {
    this.#abandon()?.();
  }

  /** Releases the slot only after this execution's end was handled: the failure of one sibling may cancel the others. */
  releaseDeferred(): void {
    const release = this.#abandon();
    if (release !== undefined) setImmediate(release);
  }

  /** Stops the stopwatches and returns what frees the slot, if it is held. */
  #abandon(): (() => void) | undefined {
    const release = this.#release;
    if (release === undefined) return undefined;
    for (const watch of this.#watches) watch.stop();
    this.#release = undefined;
    return release;
  }
}

/** One who waits for a slot. */
export interface SlotWait {
  /** Aborted if no slot is needed any more. */
  readonly signal: AbortSignal;
  /** Calls the listener when the wait ends without a slot, at once if it is over. Returns the unsubscriber. */
  onOver(listener: () => void): () => void;
}

/** A session's limit on stages that run at the same time, over all its runs. First come, first served. */
export interface ConcurrencySlots {
  readonly size: number;
  /**
   * Waits for a slot if none is free. Returns its release function, to be called once, or undefined if the wait is over first.
   */
  acquire(wait: SlotWait): Promise<(() => void) | undefined> | (() => void) | undefined;
  readonly isFull: boolean;
  /** Takes a slot even if none is free. Returns its release function. */
  take(): () => void;
}

// Not p-queue: a stage holds its slot across awaits and releases it while it waits, which a queue of functions cannot express.

export function createConcurrencySlots(size: number): ConcurrencySlots {
  const waiting = new Set<() => void>();
  let held = 0;

  const release = (): void => {
    held -= 1;
    // More may be held than there are.
    if (held >= size) return;
    const [first] = waiting;
    first?.();
  };
  const hold = (): (() => void) => {
    held += 1;
    return release;
  };
  const next = async (wait: SlotWait): Promise<(() => void) | undefined> => {
    const { promise, resolve } = Promise.withResolvers<(() => void) | undefined>();
    const onFree = (): void => {
      waiting.delete(onFree);
      resolve(hold());
    };
    waiting.add(onFree);
    const unsubscribe = wait.onOver(() => {
      waiting.delete(onFree);
      resolve(undefined);
    });
    const slot = await promise;
    unsubscribe();
    return slot;
  };

  return {
    size,
    get isFull() {
      return held >= size;
    },
    take: hold,
    acquire: (wait) => {
      if (wait.signal.aborted) return undefined;
      return held < size && waiting.size === 0 ? hold() : next(wait);
    },
  };
}

/** Slots of `inner` that count as slots of `outer` too, for a list with a limit of its own. */
export function slotsWithin(outer: ConcurrencySlots, inner: ConcurrencySlots): ConcurrencySlots {
  return {
    size: Math.min(outer.size, inner.size),
    get isFull() {
      return inner.isFull || outer.isFull;
    },
    take: () => {
      const [own, shared] = [inner.take(), outer.take()];
      return () => {
        shared();
        own();
      };
    },
    acquire: async (wait) => {
      const own = await inner.acquire(wait);
      const shared = own && (await outer.acquire(wait));
      if (shared === undefined) {
        own?.();
        return undefined;
      }
      return () => {
        shared();
        own?.();
      };
    },
  };
}
