import type { Stopwatch } from "./budget.ts";
import type { Slot, Slots } from "./semaphore.ts";

/** One execution's place among the session's stages at work. Its clock and its run's go while it holds the place. */
export class Place {
  readonly #slots: Slots;
  readonly #own: Stopwatch;
  readonly #run: Stopwatch;
  readonly #signal: AbortSignal;
  #slot: Slot | undefined;

  constructor(slots: Slots, own: Stopwatch, run: Stopwatch, signal: AbortSignal) {
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
