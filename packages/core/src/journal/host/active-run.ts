import type { Clock } from "../../base/clock.ts";
import type { SluiceError } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import type { RunPosition } from "../record.ts";
import type { LiveChunk, SiblingEnd } from "../seam.ts";
import type { JournalStore } from "../store/journal-store.ts";
import type { RecordedSteps } from "./recorded-steps.ts";

/** One run while it runs in this host. */
export interface ActiveRun {
  readonly store: JournalStore;
  readonly clock: Clock;
  readonly at: RunPosition;
  readonly recorded: RecordedSteps;
  readonly control: Cancellation;
  readonly tree: ActiveTree;
}

/** Shared by all runs of a tree. */
export interface ActiveTree {
  /** The id of the root run. */
  readonly runId: string;
  /** Stops every run of the tree here; they can be resumed. */
  stop(thrown: unknown): void;
  /** Calls the listener when there may be new signals. Returns the unsubscriber. */
  onSignal(listener: () => void): () => void;
  emit(chunk: LiveChunk): void;
  heard(): boolean;
  /** Keeps the tree owned until abandoned work settles. */
  hold(work: Promise<unknown>): void;
  /** Runs the program for one run of the tree and records its end. */
  work(control: Cancellation, at: RunPosition, recorded: RecordedSteps, input: Json): Promise<SiblingEnd>;
}

/** A failed write stops the whole tree at once, so that no sibling begins anything after it. */
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

/** Called when the run is cancelled or has to stop; the `Cancellation` says which. */
export interface CancellationListener {
  controlChanged(): void;
}

/** Whether one run may continue here. */
export class Cancellation {
  readonly #controller = new AbortController();
  #listener: CancellationListener | undefined;
  #cancelled: SluiceError | undefined;
  #stopped: SluiceError | undefined;

  /** Aborts when the run is cancelled or has to stop here, whichever comes first. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Why the run was cancelled; its own code ends it. */
  get cancelled(): SluiceError | undefined {
    return this.#cancelled;
  }

  /** Why every further step rejects here. */
  get stopped(): SluiceError | undefined {
    return this.#stopped;
  }

  /** Only the first reason counts. */
  cancel(reason: SluiceError): void {
    if (this.#cancelled !== undefined) return;
    this.#cancelled = reason;
    this.#notify(reason);
  }

  stop(reason: SluiceError): void {
    if (this.#stopped !== undefined) return;
    this.#stopped = reason;
    this.#notify(reason);
  }

  /** Replaces the listener: only the run's open step listens. */
  listen(listener: CancellationListener): void {
    this.#listener = listener;
  }

  unlisten(listener: CancellationListener): void {
    if (this.#listener === listener) this.#listener = undefined;
  }

  #notify(reason: SluiceError): void {
    this.#controller.abort(reason);
    this.#listener?.controlChanged();
  }
}
