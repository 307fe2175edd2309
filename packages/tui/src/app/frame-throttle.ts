import type { Clock } from "@sluice/core";

/** Bursts of changes are drawn once in this time, in milliseconds. */
const FRAME_MS = 33;
/** How often elapsed times are redrawn, in milliseconds. */
const TICK_MS = 1_000;

/** Notifies listeners of changes: immediately after keys, throttled after other changes, and every second while a run is active. */
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
    if (!this.#closed) this.#pending ??= this.#clock.after(FRAME_MS, () => this.now());
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
