import type { SluiceError } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import type { EventDraft } from "../events.ts";
import type { JournalRecord, ReceivedSignal, StepCall, StepOptions } from "../seam.ts";
import type { ActiveRun, CancellationListener } from "./active-run.ts";
import { CoalescedWork } from "./store-changes.ts";

/** The code of a stop that leaves steps their grace period; after any other stop, nothing can be recorded. */
export const SUSPENDED = "run_stopped";

const NO_SIGNALS: readonly ReceivedSignal[] = [];
const NO_EVENTS: readonly EventDraft[] = [];

type StepContext = Pick<ActiveRun, "control" | "clock" | "tree">;
type StepFunction<T> = (call: StepCall) => Promise<T> | T;

/** The signals of a run. */
export interface Inbox {
  /** Received signals of this name that were not taken yet. */
  untaken(name: string): Promise<readonly ReceivedSignal[]> | readonly ReceivedSignal[];
  taken(name: string, count: number): void;
}

/** A step that runs a function and records what it returns. */
export class FunctionStep<T extends Json> implements Step<T, T> {
  readonly stepId: string;
  open: StepOptions["open"];
  readonly around: StepContext;
  readonly graceMs: number;
  readonly #inbox: Inbox;
  readonly #takes: StepOptions["takes"];
  readonly #fn: StepFunction<T>;
  #call: RunningCall | undefined;

  constructor(
    around: StepContext,
    inbox: Inbox,
    stepId: string,
    fn: StepFunction<T>,
    { open, graceMs = 0, takes }: StepOptions,
  ) {
    this.stepId = stepId;
    this.open = open;
    this.around = around;
    this.graceMs = graceMs;
    this.#inbox = inbox;
    this.#takes = takes;
    this.#fn = fn;
  }

  make(opened: StepCall["opened"]): Promise<T> | T {
    const call = new RunningCall(this, opened);
    this.#call = call;
    const fn = this.#fn;
    const work = fn(call);
    return isPromiseLike(work) ? call.endOf(work) : work;
  }

  events(): readonly EventDraft[] {
    return this.#call?.events ?? NO_EVENTS;
  }

  hand(value: T): T {
    if (this.#takes !== undefined) this.#inbox.taken(this.#takes.name, this.#takes.count(value));
    return value;
  }

  signals(): Promise<readonly ReceivedSignal[]> | readonly ReceivedSignal[] {
    return this.#takes === undefined ? NO_SIGNALS : this.#inbox.untaken(this.#takes.name);
  }

  close(): void {
    this.#call?.close();
  }
}

type StepOfCall = Pick<FunctionStep<Json>, "around" | "graceMs" | "signals">;

/** The argument of a running step's function. When the run has to stop, its signal aborts after the grace period and it is abandoned. */
class RunningCall implements StepCall, CancellationListener {
  readonly opened?: NonNullable<StepCall["opened"]>;
  readonly #step: StepOfCall;
  #events: EventDraft[] | undefined;
  #controller: AbortController | undefined;
  #aborted: SluiceError | undefined;
  #work: Promise<unknown> | undefined;
  #reject: ((reason: unknown) => void) | undefined;
  #disarm: (() => void) | undefined;

  constructor(step: StepOfCall, opened: StepCall["opened"]) {
    if (opened !== undefined) this.opened = opened;
    this.#step = step;
    this.#aborted = step.around.control.cancelled;
  }

  // Getters, so that a call that waits for a model holds no closures.
  get event(): StepCall["event"] {
    return (draft) => {
      this.#events ??= [];
      this.#events.push(draft);
    };
  }

  get hold(): StepCall["hold"] {
    return (work) => this.#step.around.tree.hold(work);
  }

  get events(): readonly EventDraft[] {
    return this.#events ?? NO_EVENTS;
  }

  signals(): Promise<readonly ReceivedSignal[]> | readonly ReceivedSignal[] {
    return this.#step.signals();
  }

  /** Created on first access, since most steps never need the costly controller. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#aborted !== undefined) this.#controller.abort(this.#aborted);
    }
    return this.#controller.signal;
  }

  /** The result of the work; rejects if the run has to stop first. */
  endOf<T>(work: Promise<T>): Promise<T> {
    const { control } = this.#step.around;
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
    const { control, clock } = this.#step.around;
    if (control.stopped === undefined) this.#abort(control.cancelled);
    else if (control.stopped.code === SUSPENDED && this.#step.graceMs > 0)
      this.#disarm ??= clock.after(this.#step.graceMs, () => this.#abandon());
    else this.#abandon();
  }

  close(): void {
    this.#step.around.control.unlisten(this);
    this.#disarm?.();
  }

  #abandon(): void {
    const { control, tree } = this.#step.around;
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

/** A kind of step. */
export interface Step<V, T> {
  readonly stepId: string;
  /** The content of the open record, which is written before `make`; removed once it is written. Without it there is no open record. */
  open: StepOptions["open"];
  /** Throws if this cannot be the recorded step; `known` is its open record, if any. */
  check?(known: JournalRecord | undefined): void;
  /** Makes the value to record; not called for a done step. `fresh`: no earlier process began this step. */
  make(opened: StepCall["opened"], fresh: boolean): Promise<V> | V;
  /** Releases what `make` used. May be called more than once. */
  close?(): void;
  /** The events of the done record. */
  events(value: V): readonly EventDraft[];
  /** Converts the recorded value to what the program gets, now and on resume. */
  hand(value: V): T;
}

export interface Wait {
  /** The latest end of the wait, in epoch milliseconds. */
  readonly until?: number;
  /** Whether the wait is over; called again whenever the store may have changed. */
  readonly arrived?: () => Promise<boolean>;
}

/** Waits until `arrived`, until the time, or until the run is cancelled. Rejects if the run has to stop. */
export async function waitForSignal(
  run: Pick<ActiveRun, "control" | "clock" | "tree">,
  { until, arrived }: Wait,
): Promise<void> {
  const { control, clock, tree } = run;
  if (arrived !== undefined && (await arrived())) return;
  await new Promise<void>((resolve, reject) => {
    const cleanups: (() => void)[] = [];
    let ended = false;
    const end = (settle: () => void): void => {
      if (ended) return;
      ended = true;
      for (const cleanup of cleanups) cleanup();
      settle();
    };
    const controlChanged = (): void => {
      if (control.stopped !== undefined) end(() => reject(control.stopped));
      else if (control.cancelled !== undefined) end(resolve);
    };
    const run = async (): Promise<void> => {
      try {
        // The time first: a signal that was accepted before it counts.
        const isDue = until !== undefined && clock.now() >= until;
        if (ended) return;
        if ((arrived !== undefined && (await arrived())) || isDue) end(resolve);
      } catch (thrown) {
        end(() => reject(thrown));
      }
    };
    const checking = new CoalescedWork({ run });
    const arm = (until: number): void => {
      // A timer may fire slightly early, and a clock may be set back.
      const onTime = (): void => (clock.now() < until ? arm(until) : checking.request());
      disarm = clock.after(until - clock.now(), onTime);
    };
    let disarm: (() => void) | undefined;

    const listener = { controlChanged };
    control.listen(listener);
    cleanups.push(
      () => control.unlisten(listener),
      () => disarm?.(),
    );
    if (arrived !== undefined) cleanups.push(tree.onSignal(() => checking.request()));
    if (until !== undefined) arm(until);
    controlChanged();
    if (!ended) checking.request();
  });
}
