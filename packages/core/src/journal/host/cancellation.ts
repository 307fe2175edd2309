import type { SluiceError } from "../../base/errors.ts";

/** Hears that the run was cancelled or has to stop, and looks at the control for which of them. */
export interface ControlListener {
  controlChanged(): void;
}

/** Whether one run may go on here. */
export class Control {
  readonly #over = new AbortController();
  #listener: ControlListener | undefined;
  #cancelled: SluiceError | undefined;
  #stopped: SluiceError | undefined;

  /** For the program: aborts when the run is cancelled or has to stop here, whichever comes first. */
  get signal(): AbortSignal {
    return this.#over.signal;
  }

  /** Why the run is to end; it ends through its own code. */
  get cancelled(): SluiceError | undefined {
    return this.#cancelled;
  }

  /** Why no further step may be taken here. */
  get stopped(): SluiceError | undefined {
    return this.#stopped;
  }

  /** Only the first reason counts. */
  cancel(reason: SluiceError): void {
    if (this.#cancelled !== undefined) return;
    this.#cancelled = reason;
    this.#tell(reason);
  }

  stop(reason: SluiceError): void {
    if (this.#stopped !== undefined) return;
    this.#stopped = reason;
    this.#tell(reason);
  }

  /** Tells this listener alone from now on: only the run's open step listens, and there is never more than one. */
  listen(listener: ControlListener): void {
    this.#listener = listener;
  }

  unlisten(listener: ControlListener): void {
    if (this.#listener === listener) this.#listener = undefined;
  }

  #tell(reason: SluiceError): void {
    this.#over.abort(reason);
    this.#listener?.controlChanged();
  }
}
