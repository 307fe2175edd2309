import type { SluiceError } from "../../base/errors.ts";
import type { EventDraft } from "../events.ts";
import type { ReceivedSignal, StepCall } from "../seam.ts";
import type { ActiveRun, CancellationListener } from "./active-run.ts";
import { Coalesced } from "./store-changes.ts";

/** The code of a stop that leaves steps their grace period; after any other stop, nothing can be recorded. */
export const SUSPENDED = "run_stopped";

export const NO_EVENTS: readonly EventDraft[] = [];

type StepContext = Pick<ActiveRun, "control" | "clock" | "tree">;

/** What a call is for its step. */
export interface CallOptions {
  readonly opened: StepCall["opened"];
  readonly graceMs: number;
  readonly signals: () => Promise<readonly ReceivedSignal[]>;
}

/** The argument of a running step's function. When the run has to stop, its signal aborts after the grace period and it is abandoned. */
export class RunningCall implements StepCall, CancellationListener {
  readonly opened?: NonNullable<StepCall["opened"]>;
  readonly signals: StepCall["signals"];
  readonly #around: StepContext;
  readonly #graceMs: number;
  #events: EventDraft[] | undefined;
  #controller: AbortController | undefined;
  #aborted: SluiceError | undefined;
  #work: Promise<unknown> | undefined;
  #reject: ((reason: unknown) => void) | undefined;
  #disarm: (() => void) | undefined;

  constructor(around: StepContext, { opened, graceMs, signals }: CallOptions) {
    if (opened !== undefined) this.opened = opened;
    this.signals = signals;
    this.#around = around;
    this.#graceMs = graceMs;
    this.#aborted = around.control.cancelled;
  }

  // Functions of their own, since they are passed on without the call; made on access, since a waiting call has few of them.
  get event(): StepCall["event"] {
    return (draft) => {
      this.#events ??= [];
      this.#events.push(draft);
    };
  }

  get hold(): StepCall["hold"] {
    return (work) => this.#around.tree.hold(work);
  }

  get events(): readonly EventDraft[] {
    return this.#events ?? NO_EVENTS;
  }

  /** Created on first access, since most steps never need the costly controller. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#aborted !== undefined) this.#controller.abort(this.#aborted);
    }
    return this.#controller.signal;
  }

  /** What the step's function returns. Rejects if the run has to stop first. */
  resultOf<T>(fn: (call: StepCall) => Promise<T> | T): Promise<T> | T {
    const { control } = this.#around;
    const work = fn(this);
    if (!isPromiseLike(work)) return work;
    const working = Promise.resolve(work);
    this.#work = working;
    return new Promise((resolve, reject) => {
      this.#reject = reject;
      working.then(resolve, reject);
      control.listen(this);
      // The function may have stopped the run before it returned its promise.
      if (control.stopped !== undefined || control.cancelled !== undefined) this.controlChanged();
    });
  }

  controlChanged(): void {
    const { control, clock } = this.#around;
    if (control.stopped === undefined) this.#abort(control.cancelled);
    else if (control.stopped.code === SUSPENDED && this.#graceMs > 0)
      this.#disarm ??= clock.after(this.#graceMs, () => this.#abandon());
    else this.#abandon();
  }

  close(): void {
    this.#around.control.unlisten(this);
    this.#disarm?.();
  }

  #abandon(): void {
    const { control, tree } = this.#around;
    this.#abort(control.stopped);
    // The abandoned code could still act, so the run stays locked until it ends.
    if (this.#work !== undefined) tree.hold(this.#work);
    this.close();
    this.#reject?.(control.stopped);
  }

  #abort(reason: SluiceError | undefined): void {
    this.#aborted ??= reason;
    this.#controller?.abort(this.#aborted);
  }
}

function isPromiseLike<T>(work: Promise<T> | T): work is Promise<T> {
  return typeof work === "object" && work !== null && "then" in work && typeof work.then === "function";
}

export interface Wait {
  /** The latest end of the wait, in epoch milliseconds. */
  readonly until?: number | undefined;
  /** Whether the wait is over; called again whenever the store may have changed. */
  readonly arrived?: () => Promise<boolean>;
}

/** Waits until `arrived`, until the time, or until the run is cancelled. Rejects if the run has to stop. */
export async function waitForSignal({ control, clock, tree }: StepContext, { until, arrived }: Wait): Promise<void> {
  if (arrived !== undefined && (await arrived())) return;
  let ended = false;
  let disarm: (() => void) | undefined;
  let unsubscribe: (() => void) | undefined;
  let listener: CancellationListener | undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      const check = new Coalesced(async () => {
        try {
          // The time first: a signal that was accepted before it counts.
          const isDue = until !== undefined && clock.now() >= until;
          if (!ended && ((await arrived?.()) || isDue)) resolve();
        } catch (thrown) {
          reject(thrown);
        }
      });
      const arm = (until: number): void => {
        // A timer may fire slightly early, and a clock may be set back.
        disarm = clock.after(until - clock.now(), () => (clock.now() < until ? arm(until) : check.request()));
      };
      const controlChanged = (): void => {
        if (control.stopped !== undefined) reject(control.stopped);
        else if (control.cancelled !== undefined) resolve();
      };
      listener = { controlChanged };
      control.listen(listener);
      if (arrived !== undefined) unsubscribe = tree.onSignal(() => check.request());
      if (until !== undefined) arm(until);
      controlChanged();
      if (!control.signal.aborted) check.request();
    });
  } finally {
    ended = true;
    disarm?.();
    unsubscribe?.();
    if (listener !== undefined) control.unlisten(listener);
  }
}
