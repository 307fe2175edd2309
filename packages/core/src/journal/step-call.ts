import { setMaxListeners } from "node:events";
import type { SluiceError } from "../base/errors.ts";
import type { ControlListener } from "./control.ts";
import type { EventDraft } from "./events.ts";
import type { RunAtWork } from "./run-at-work.ts";
import type { StepCall, StepOptions } from "./seam.ts";
import type { Step } from "./step-runner.ts";

/** The code of the one stop that leaves a step its grace; any other means that what it does cannot be recorded any more. */
export const SUSPENDED = "run_stopped";

type Around = Pick<RunAtWork, "control" | "clock" | "tree">;
type StepFunction<T> = (call: StepCall) => Promise<T> | T;

/** The step that runs a function and records what it returns. */
export class FunctionStep<T> implements Step<T, T> {
  readonly stepId: string;
  open: StepOptions["open"];
  readonly #around: Around;
  readonly #fn: StepFunction<T>;
  readonly #graceMs: number;
  #call: CallAtWork | undefined;

  constructor(around: Around, stepId: string, fn: StepFunction<T>, { open, graceMs = 0 }: StepOptions) {
    this.stepId = stepId;
    this.open = open;
    this.#around = around;
    this.#fn = fn;
    this.#graceMs = graceMs;
  }

  make(opened: StepCall["opened"]): Promise<T> | T {
    const call = new CallAtWork(this.#around, this.#graceMs, opened);
    this.#call = call;
    const fn = this.#fn;
    const work = fn(call);
    return isPromiseLike(work) ? call.endOf(work) : work;
  }

  events(): readonly EventDraft[] {
    return this.#call?.events ?? [];
  }

  hand(value: T): T {
    return value;
  }

  close(): void {
    this.#call?.close();
  }
}

/** What a step's function is given. When the run has to stop, its signal aborts after the grace, and it is given up. */
class CallAtWork implements StepCall, ControlListener {
  readonly opened?: NonNullable<StepCall["opened"]>;
  readonly hold: StepCall["hold"];
  readonly events: EventDraft[] = [];
  readonly #around: Around;
  readonly #graceMs: number;
  #controller: AbortController | undefined;
  #aborted: SluiceError | undefined;
  #work: Promise<unknown> | undefined;
  #reject: ((reason: unknown) => void) | undefined;
  #disarm: (() => void) | undefined;

  constructor(around: Around, graceMs: number, opened: StepCall["opened"]) {
    if (opened !== undefined) this.opened = opened;
    this.hold = around.tree.hold;
    this.#around = around;
    this.#graceMs = graceMs;
    this.#aborted = around.control.cancelled;
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

  /** What the work comes to; rejects when the run has to stop before. */
  endOf<T>(work: Promise<T>): Promise<T> {
    const { control } = this.#around;
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
    const { control, clock } = this.#around;
    if (control.stopped === undefined) this.#abort(control.cancelled);
    else if (control.stopped.code === SUSPENDED && this.#graceMs > 0)
      this.#disarm ??= clock.after(this.#graceMs, () => this.#giveUp());
    else this.#giveUp();
  }

  close(): void {
    this.#around.control.unlisten(this);
    this.#disarm?.();
  }

  #giveUp(): void {
    const { control, tree } = this.#around;
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
