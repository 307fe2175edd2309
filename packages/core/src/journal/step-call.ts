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

/** Runs a step's function. When the run has to stop, the signal aborts after the grace, and the step is given up unrecorded. */
export async function callStep<T>(
  run: Pick<RunAtWork, "control" | "clock" | "tree">,
  fn: (call: StepCall) => Promise<T> | T,
  graceMs: number,
  opened: StepCall["opened"],
): Promise<StepResult<T>> {
  const { control, clock, tree } = run;
  const events: EventDraft[] = [];
  // Made when somebody asks for it: most steps never do, and a controller costs more than all else here.
  let controller: AbortController | undefined;
  let aborted = control.cancelled;
  const abort = (reason: SluiceError | undefined): void => {
    aborted ??= reason;
    controller?.abort(aborted);
  };
  const work = fn({
    get signal() {
      if (controller === undefined) {
        controller = new AbortController();
        setMaxListeners(0, controller.signal);
        if (aborted !== undefined) controller.abort(aborted);
      }
      return controller.signal;
    },
    ...(opened === undefined ? {} : { opened }),
    event: (draft) => {
      events.push(draft);
    },
    hold: tree.hold,
  });
  if (!isPromiseLike(work)) return { value: work, events };

  return await new Promise((resolve, reject) => {
    let disarm: (() => void) | undefined;
    const working = Promise.resolve(work);
    const giveUp = (): void => {
      abort(control.stopped);
      // Code that goes on after this could still act: the run's lock is kept until it ends.
      tree.hold(working);
      leave();
      reject(control.stopped);
    };
    const onChange = (): void => {
      if (control.stopped === undefined) abort(control.cancelled);
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
