import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { ActOutcome } from "./executor.ts";
import { cancelReason } from "./over.ts";
import type { OpenScope } from "./scope.ts";

/** An executor that ignores the end of its run has this long to end by itself. */
const DEAF_MS = 50;

/** The wait for an executor's outcome. One that is deaf is given up, but never while something it asked for is at work. */
export class ActWait {
  readonly #open: OpenScope;
  readonly #signal: AbortSignal;
  readonly #clock: Clock;
  #over = false;
  #resolve: ((givenUp: undefined) => void) | undefined;
  #reject: ((stopped: Error) => void) | undefined;
  #disarm: (() => void) | undefined;

  constructor(open: OpenScope, signal: AbortSignal, clock: Clock) {
    this.#open = open;
    this.#signal = signal;
    this.#clock = clock;
  }

  /** Undefined when the run was cancelled, a rejection when it has to stop here. Call `close` when it has settled. */
  outcomeOf(act: Promise<ActOutcome>): Promise<ActOutcome | undefined> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      act.then(resolve, (thrown: unknown) => reject(asError(thrown)));
      this.#open.onBusy(this.#look);
      this.#signal.addEventListener("abort", this.#look, { once: true });
      this.#look();
    });
  }

  close(): void {
    this.#over = true;
    this.#disarm?.();
    this.#signal.removeEventListener("abort", this.#look);
  }

  /** Once the run is over, patience begins whenever nothing is at work any more. */
  readonly #look = (): void => {
    this.#disarm?.();
    if (this.#over || !this.#signal.aborted || this.#open.busy()) return;
    try {
      // Throws when the run goes on elsewhere: then nothing can be recorded here, and there is nothing to wait for.
      cancelReason(this.#signal);
      this.#disarm = this.#clock.after(DEAF_MS, () => this.#resolve?.(undefined));
    } catch (stopped) {
      this.#reject?.(asError(stopped));
    }
  };
}

function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(messageOf(thrown));
}
