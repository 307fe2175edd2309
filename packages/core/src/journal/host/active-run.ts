import type { Clock } from "../../base/clock.ts";
import type { SluiceError } from "../../base/errors.ts";
import type { RunPosition } from "../record/append.ts";
import type { ChildRun, LiveChunk, SiblingEnd } from "../seam.ts";
import type { JournalStore } from "../store/journal-store.ts";
import type { RecordedSteps } from "./recorded-steps.ts";

/** What a host keeps of one run while it works here. */
export interface ActiveRun {
  readonly store: JournalStore;
  readonly clock: Clock;
  readonly at: RunPosition;
  readonly past: RecordedSteps;
  readonly control: Cancellation;
  readonly tree: ActiveTree;
}

/** What a run shares with the whole tree it belongs to. */
export interface ActiveTree {
  /** Stops every run of the tree here, resumable: one of them cannot go on. */
  stop(thrown: unknown): void;
  /** Calls back when signals may have come. Returns the unsubscriber. */
  onSignal(listener: () => void): () => void;
  emit(chunk: LiveChunk): void;
  heard(): boolean;
  /** Work that goes on after its step; the tree stays owned until it settles. */
  hold(work: Promise<unknown>): void;
  /** Starts a child that was never started, or takes up one that was; `fresh` says that none of this fork was. */
  openChild(parent: ActiveRun, stepId: string, child: ChildRun, fresh: boolean): Promise<ChildTask | ChildEnd>;
  /** Ends a child that does not work here, and everything below it, as cancelled, without running their code. */
  closeChild(parent: ActiveRun, stepId: string, child: ChildRun, reason: string): Promise<SiblingEnd>;
}
/** One child at work, as its parent sees it. */
export interface ChildTask {
  readonly end: Promise<SiblingEnd>;
  cancel(reason: SluiceError): void;
}
export interface ChildEnd {
  readonly ended: SiblingEnd;
}

/** What a journal does not take stops the whole tree at once: no sibling may begin anything after it. */
export function stopOnFailure<T>(tree: Pick<ActiveTree, "stop">, write: () => Promise<T> | T): Promise<T> | T {
  const stop = (thrown: unknown): never => {
    tree.stop(thrown);
    throw thrown;
  };
  try {
    const written = write();
    return written instanceof Promise ? written.catch(stop) : written;
  } catch (thrown) {
    return stop(thrown);
  }
}

/** Hears that the run was cancelled or has to stop, and looks at the control for which of them. */
export interface CancellationListener {
  controlChanged(): void;
}

/** Whether one run may go on here. */
export class Cancellation {
  readonly #over = new AbortController();
  #listener: CancellationListener | undefined;
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
  listen(listener: CancellationListener): void {
    this.#listener = listener;
  }

  unlisten(listener: CancellationListener): void {
    if (this.#listener === listener) this.#listener = undefined;
  }

  #tell(reason: SluiceError): void {
    this.#over.abort(reason);
    this.#listener?.controlChanged();
  }
}
