import type { Clock } from "@sluice/core";

/** What comes in a burst is drawn once in this many milliseconds. */
const BEAT_MS = 33;
/** How often elapsed time is drawn anew. */
const TICK_MS = 1_000;

/** Tells who draws that something changed: at once after a key, soon after anything else, every second while time counts. */
export class FrameThrottle {
  readonly #clock: Clock;
  readonly #isTicking: () => boolean;
  readonly #listeners = new Set<() => void>();
  #pending: (() => void) | undefined;
  #tick: (() => void) | undefined;
  #closed = false;

  constructor(clock: Clock, isTicking: () => boolean) {
    this.#clock = clock;
    this.#isTicking = isTicking;
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  soon(): void {
    if (!this.#closed) this.#pending ??= this.#clock.after(BEAT_MS, () => this.now());
  }

  now(): void {
    this.#disarm();
    if (this.#closed) return;
    for (const listener of this.#listeners) listener();
    if (this.#isTicking()) this.#tick = this.#clock.after(TICK_MS, () => this.now());
  }

  close(): void {
    this.#disarm();
    this.#closed = true;
  }

  #disarm(): void {
    this.#pending?.();
    this.#pending = undefined;
    this.#tick?.();
    this.#tick = undefined;
  }
}
