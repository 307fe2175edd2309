import { setMaxListeners } from "node:events";
import type { SluiceError } from "../base/errors.ts";
import type { EventDraft } from "./events.ts";
import type { StepCall } from "./seam.ts";
import type { RunAtWork } from "./step-runner.ts";

/** The code of the one stop that leaves a step its grace; any other means that what it does cannot be recorded any more. */
export const SUSPENDED = "run_stopped";

export interface StepResult<T> {
  readonly value: T;
  readonly events: readonly EventDraft[];
}

/** What a step's function is given. A class, because getters of a literal are made anew with every one of them. */
class CallAtWork implements StepCall {
  readonly opened?: NonNullable<StepCall["opened"]>;
  readonly hold: StepCall["hold"];
  readonly events: EventDraft[] = [];
  #controller: AbortController | undefined;
  #aborted: SluiceError | undefined;

  constructor(opened: StepCall["opened"], hold: StepCall["hold"], aborted: SluiceError | undefined) {
    if (opened !== undefined) this.opened = opened;
    this.hold = hold;
    this.#aborted = aborted;
  }

  readonly event = (draft: EventDraft): void => {
    this.events.push(draft);
  };

  /** Made when somebody asks for it: most steps never do, and a controller costs more than all else here. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      setMaxListeners(0, this.#controller.signal);
      if (this.#aborted !== undefined) this.#controller.abort(this.#aborted);
    }
    return this.#controller.signal;
  }

  abort(reason: SluiceError | undefined): void {
    this.#aborted ??= reason;
    this.#controller?.abort(this.#aborted);
  }
}

/** Runs a step's function. When the run has to stop, the signal aborts after the grace, and the step is given up unrecorded. */
export function callStep<T>(
  run: Pick<RunAtWork, "control" | "clock" | "tree">,
  fn: (call: StepCall) => Promise<T> | T,
  graceMs: number,
  opened: StepCall["opened"],
): Promise<StepResult<T>> | StepResult<T> {
  const { control, clock, tree } = run;
  const call = new CallAtWork(opened, tree.hold, control.cancelled);
  const { events } = call;
  const work = fn(call);
  if (!isPromiseLike(work)) return { value: work, events };

  return new Promise((resolve, reject) => {
    let disarm: (() => void) | undefined;
    const working = Promise.resolve(work);
    const giveUp = (): void => {
      call.abort(control.stopped);
      // Code that goes on after this could still act: the run's lock is kept until it ends.
      tree.hold(working);
      leave();
      reject(control.stopped);
    };
    const onChange = (): void => {
      if (control.stopped === undefined) call.abort(control.cancelled);
      else if (control.stopped.code === SUSPENDED && graceMs > 0) disarm ??= clock.after(graceMs, giveUp);
      else giveUp();
    };
    const stopListening = control.onChange(onChange);
    const leave = (): void => {
      stopListening();
      disarm?.();
    };
    working.then(
      (value) => {
        leave();
        resolve({ value, events });
      },
      (thrown: unknown) => {
        leave();
        reject(thrown);
      },
    );
    // It may have been stopped by the function itself, before it returned its promise.
    if (control.stopped !== undefined || control.cancelled !== undefined) onChange();
  });
}

function isPromiseLike<T>(work: Promise<T> | T): work is Promise<T> {
  return typeof work === "object" && work !== null && "then" in work && typeof work.then === "function";
}
