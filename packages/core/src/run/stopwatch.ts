import type { Clock } from "../base/clock.ts";

/** Counts time while at least one user holds it running: a run's clock stops when all of it waits. */
export class Stopwatch {
  readonly #clock: Clock;
  #total: number;
  #running = 0;
  #since = 0;

  constructor(clock: Clock, already = 0) {
    this.#clock = clock;
    this.#total = already;
  }

  ms(): number {
    return this.#running > 0 ? this.#total + this.#clock.now() - this.#since : this.#total;
  }

  start(): void {
    if (this.#running === 0) this.#since = this.#clock.now();
    this.#running += 1;
  }

  stop(): void {
    this.#running -= 1;
    if (this.#running === 0) this.#total += this.#clock.now() - this.#since;
  }
}
