import { setMaxListeners } from "node:events";
import type { SluiceError } from "../base/errors.ts";

/** Whether one run may go on here. Listeners are kept in a set: thousands of siblings come and go at no cost to each other. */
export interface Control {
  /** For the program: aborts when the run is cancelled or has to stop here, whichever comes first. */
  readonly signal: AbortSignal;
  /** Why the run is to end; it ends through its own code. */
  readonly cancelled: SluiceError | undefined;
  /** Why no further step may be taken here. */
  readonly stopped: SluiceError | undefined;
  /** Only the first reason counts. */
  cancel(reason: SluiceError): void;
  stop(reason: SluiceError): void;
  /** Calls back on cancel and on stop. Returns the unsubscriber. */
  onChange(listener: () => void): () => void;
}

export function createControl(): Control {
  const over = new AbortController();
  const listeners = new Set<() => void>();
  let cancelled: SluiceError | undefined;
  let stopped: SluiceError | undefined;
  setMaxListeners(0, over.signal);

  const tell = (reason: SluiceError): void => {
    over.abort(reason);
    for (const listener of [...listeners]) listener();
  };
  return {
    signal: over.signal,
    get cancelled() {
      return cancelled;
    },
    get stopped() {
      return stopped;
    },
    cancel(reason) {
      if (cancelled !== undefined) return;
      cancelled = reason;
      tell(reason);
    },
    stop(reason) {
      if (stopped !== undefined) return;
      stopped = reason;
      tell(reason);
    },
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
