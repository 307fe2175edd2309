import { messageOf } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import type { StageContext } from "../../definition/result.ts";
import type { Attempt } from "../attempt.ts";
import { cancelReason } from "../cancellation.ts";
import type { ActOutcome } from "../executor.ts";
import { type BusyListener, OpenScope } from "./act-scope.ts";
import { checkedOutput } from "./check-outcome.ts";
import { outOf } from "./enter.ts";
import { ENTERED, leftWith } from "./phase-events.ts";

/** An executor that ignores the end of its run has this long to end by itself. */
const DEAF_MS = 50;

/** The work of one attempt. An executor that is deaf is given up, but never while something it asked for is at work. */
export class Act implements BusyListener {
  readonly #attempt: Attempt;
  readonly #open: OpenScope;
  readonly #init: Json;
  #resolve: ((acted: ActOutcome | undefined) => void) | undefined;
  #reject: ((stopped: Error) => void) | undefined;
  #disarm: (() => void) | undefined;
  #onAbort: (() => void) | undefined;

  /** `turnsBefore` are the turns of this state before this attempt. */
  constructor(attempt: Attempt, ctx: StageContext, init: Json, turnsBefore: number) {
    this.#attempt = attempt;
    this.#open = new OpenScope(attempt, ctx, turnsBefore);
    this.#init = init;
  }

  /** What the executor comes to. Undefined when the run was cancelled before, a rejection when it has to stop here. */
  work(): Promise<ActOutcome | undefined> {
    this.#attempt.journal.note("stage.act", ENTERED);
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      const act = this.#attempt.execution.executor.act(this.#init, this.#open.scope);
      act.then(resolve, (thrown: unknown) => this.#fail(thrown));
      this.#open.onBusy(this);
      this.busyChanged();
    });
  }

  /** Ends the attempt for its executor, and says what it came to. */
  async end(acted: ActOutcome | undefined): Promise<ActOutcome> {
    const { execution, journal } = this.#attempt;
    this.#close();
    const cancelled = cancelReason(execution.steps.signal);
    // A token never survives its attempt, whatever the executor still has in its hands.
    for (const requestId of this.#open.close()) {
      journal.note("grant.expired", { requestId, cause: cancelled === undefined ? "attempt_finished" : "cancelled" });
    }
    const outcome =
      acted === undefined
        ? outOf({ kind: "cancelled", reason: cancelled ?? "cancelled" })
        : await checkedOutput(journal, execution.state, acted);
    journal.note("stage.act", leftWith(outcome.status));
    return outcome;
  }

  /** Once the run is over, patience begins whenever nothing is at work any more. What is at work ends by itself then. */
  busyChanged(): void {
    this.#disarm?.();
    if (this.#resolve === undefined || this.#open.busy()) return;
    const { steps, deps } = this.#attempt.execution;
    if (!steps.signal.aborted) {
      this.#listen(steps.signal);
      return;
    }
    try {
      // Throws when the run goes on elsewhere: then nothing can be recorded here, and there is nothing to wait for.
      cancelReason(steps.signal);
      this.#disarm = deps.clock.after(DEAF_MS, () => this.#resolve?.(undefined));
    } catch (stopped) {
      this.#fail(stopped);
    }
  }

  #listen(signal: AbortSignal): void {
    if (this.#onAbort !== undefined) return;
    this.#onAbort = () => this.busyChanged();
    signal.addEventListener("abort", this.#onAbort, { once: true });
  }

  #fail(thrown: unknown): void {
    this.#reject?.(thrown instanceof Error ? thrown : new Error(messageOf(thrown)));
    this.#close();
  }

  #close(): void {
    this.#resolve = undefined;
    this.#reject = undefined;
    this.#disarm?.();
    if (this.#onAbort !== undefined) this.#attempt.execution.steps.signal.removeEventListener("abort", this.#onAbort);
  }
}
