import type { SluiceError } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import type { EventDraft } from "../events.ts";
import type { JournalRecord, ReceivedSignal, StepCall, StepOptions } from "../seam.ts";
import type { ActiveRun, CancellationListener } from "./active-run.ts";
import { CoalescedWork } from "./store-changes.ts";

/** The code of the one stop that leaves a step its grace; any other means that what it does cannot be recorded any more. */
export const SUSPENDED = "run_stopped";

const NO_SIGNALS: readonly ReceivedSignal[] = [];
const NO_EVENTS: readonly EventDraft[] = [];

type Around = Pick<ActiveRun, "control" | "clock" | "tree">;
type StepFunction<T> = (call: StepCall) => Promise<T> | T;

/** The signals of a run, as its steps take them. */
export interface Inbox {
  /** Those of a name that have come and were not taken yet. */
  untaken(name: string): Promise<readonly ReceivedSignal[]> | readonly ReceivedSignal[];
  taken(name: string, count: number): void;
}

/** The step that runs a function and records what it returns. */
export class FunctionStep<T extends Json> implements Step<T, T> {
  readonly stepId: string;
  open: StepOptions["open"];
  readonly around: Around;
  readonly graceMs: number;
  readonly #inbox: Inbox;
  readonly #takes: StepOptions["takes"];
  readonly #fn: StepFunction<T>;
  #call: CallAtWork | undefined;

  constructor(
    around: Around,
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
    const call = new CallAtWork(this, opened);
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

/** The step of a call, as the call sees it. */
type StepOfCall = Pick<FunctionStep<Json>, "around" | "graceMs" | "signals">;

/** What a step's function is given. When the run has to stop, its signal aborts after the grace, and it is given up. */
class CallAtWork implements StepCall, CancellationListener {
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

  // Bound when asked for: a call that waits for a model holds no functions of its own.
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

  /** Made when somebody asks for it: most steps never do, and a controller costs more than all else here. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#aborted !== undefined) this.#controller.abort(this.#aborted);
    }
    return this.#controller.signal;
  }

  /** What the work comes to; rejects when the run has to stop before. */
  endOf<T>(work: Promise<T>): Promise<T> {
    const { control } = this.#step.around;
    const working = Promise.resolve(work);
    this.#work = working;
    return new Promise((resolve, reject) => {
      this.#reject = reject;
      working.then(resolve, reject);
      control.listen(this);
      // It may have been stopped by the function itself, before it returned its promise.
      if (control.stopped !== undefined || control.cancelled !== undefined) this.controlChanged();
    });
  }

  controlChanged(): void {
    const { control, clock } = this.#step.around;
    if (control.stopped === undefined) this.#abort(control.cancelled);
    else if (control.stopped.code === SUSPENDED && this.#step.graceMs > 0)
      this.#disarm ??= clock.after(this.#step.graceMs, () => this.#giveUp());
    else this.#giveUp();
  }

  close(): void {
    this.#step.around.control.unlisten(this);
    this.#disarm?.();
  }

  #giveUp(): void {
    const { control, tree } = this.#step.around;
    this.#abort(control.stopped);
    // Code that goes on after this could still act: the run's lock is kept until it ends.
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

/** One kind of step: how its value comes about, and what the program gets of it. */
export interface Step<V, T> {
  readonly stepId: string;
  /** What an open record says before anything is done; without it there is none. Gone when it is written. */
  open: StepOptions["open"];
  /** Throws when this cannot be the recorded step; `known` is its open record, if there is one. */
  check?(known: JournalRecord | undefined): void;
  /** The value to record; not asked for on replay. `fresh` says that no earlier process began this step. */
  make(opened: StepCall["opened"], fresh: boolean): Promise<V> | V;
  /** Lets go of what `make` needed, however that ended. May be called again. */
  close?(): void;
  /** Events of the record that holds the value. */
  events(value: V): readonly EventDraft[];
  /** What the program gets of a recorded value, now and on replay. */
  hand(value: V): T;
}

export interface Wait {
  /** Epoch milliseconds at which the wait is over anyway. */
  readonly until?: number;
  /** Whether what is waited for is there; asked again whenever the store may have changed. */
  readonly arrived?: () => Promise<boolean>;
}

/** Waits until it arrived, the time has come, or the run is cancelled. Rejects when the run has to stop. */
export async function waitForSignal(
  run: Pick<ActiveRun, "control" | "clock" | "tree">,
  { until, arrived }: Wait,
): Promise<void> {
  const { control, clock, tree } = run;
  if (arrived !== undefined && (await arrived())) return;
  await new Promise<void>((resolve, reject) => {
    const cleanups: (() => void)[] = [];
    let over = false;
    const end = (settle: () => void): void => {
      if (over) return;
      over = true;
      for (const cleanup of cleanups) cleanup();
      settle();
    };
    const controlChanged = (): void => {
      if (control.stopped !== undefined) end(() => reject(control.stopped));
      else if (control.cancelled !== undefined) end(resolve);
    };
    const look = async (): Promise<void> => {
      try {
        // What came in the last moment counts: its sender was told that it was accepted.
        const late = until !== undefined && clock.now() >= until;
        if (over) return;
        if ((arrived !== undefined && (await arrived())) || late) end(resolve);
      } catch (thrown) {
        end(() => reject(thrown));
      }
    };
    const looking = new CoalescedWork({ look });
    const arm = (until: number): void => {
      // A timer may fire a moment before the clock says so, and a clock may be set back.
      const onTime = (): void => (clock.now() < until ? arm(until) : looking.ask());
      disarm = clock.after(until - clock.now(), onTime);
    };
    let disarm: (() => void) | undefined;

    const listener = { controlChanged };
    control.listen(listener);
    cleanups.push(
      () => control.unlisten(listener),
      () => disarm?.(),
    );
    if (arrived !== undefined) cleanups.push(tree.onSignal(() => looking.ask()));
    if (until !== undefined) arm(until);
    controlChanged();
    if (!over) looking.ask();
  });
}
