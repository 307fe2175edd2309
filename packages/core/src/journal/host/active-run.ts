import type { Clock } from "../../base/clock.ts";
import type { SluiceError } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import type { RunPosition } from "../record.ts";
import type { ExecutionFault, LiveChunk, SiblingEnd } from "../seam.ts";
import type { JournalStore } from "../store/journal-store.ts";
import type { Interruptions } from "./interruptions.ts";
import type { RecordedSteps, Recovery } from "./recorded-steps.ts";
import { Coalesced } from "./store-changes.ts";

/** One run while it runs in this host. */
export interface ActiveRun {
  readonly store: JournalStore;
  readonly clock: Clock;
  readonly at: RunPosition;
  readonly recorded: RecordedSteps;
  readonly control: Cancellation;
  readonly tree: ActiveTree;
}

/** What a step needs of it while it runs. */
export type StepContext = Pick<ActiveRun, "control" | "clock" | "tree">;

/** Why a program does not work. */
export interface Rest {
  readonly kind: "sleep" | "signal" | "children" | "fault";
  /** Of a rest because of a fault. */
  readonly fault?: ExecutionFault | undefined;
  /** When it continues by itself. */
  readonly until?: number | undefined;
}

/** Shared by all runs of a tree. */
export interface ActiveTree {
  /** The id of the root run. */
  readonly runId: string;
  /** Stops every run of the tree here; they can be resumed. */
  stop(thrown: unknown): void;
  /** Calls the listener when there may be new signals. Returns the unsubscriber. */
  onSignal(listener: () => void): () => void;
  /** Resolves when the signals that this process is sending are stored, or were refused. */
  sent(): Promise<void>;
  emit(chunk: LiveChunk): void;
  heard(): boolean;
  /** Undefined for a new run. */
  readonly recovery: Recovery | undefined;
  /** A program of the tree that does not work while it waits: until a time, for a signal, or for the end of a fault. */
  rest(wait: Rest): void;
  /** It works again. */
  wake(wait: Rest): void;
  /** When the tree continues without a signal; undefined if nothing of it sleeps. */
  wakeAt(): number | undefined;
  readonly interruptions: Interruptions;
  /** Keeps the tree owned until abandoned work settles. */
  hold(work: Promise<unknown>): void;
  /** Runs the program for one run of the tree and records its end. */
  work(control: Cancellation, at: RunPosition, recorded: RecordedSteps, input: Json): Promise<SiblingEnd>;
}

/** A failed write stops the whole tree at once, so that no sibling begins anything after it. */
export async function stopOnFailure<T>(tree: Pick<ActiveTree, "stop">, write: () => Promise<T> | T): Promise<T> {
  try {
    return await write();
  } catch (thrown) {
    tree.stop(thrown);
    throw thrown;
  }
}

/** Called when the run is cancelled or has to stop; the `Cancellation` says which. */
export interface CancellationListener {
  controlChanged(): void;
}

/** Whether one run may continue here. */
export class Cancellation {
  readonly #controller = new AbortController();
  /** Of the run's open step, which sets it and removes it: each step replaces that of the step before. */
  listener: CancellationListener | undefined;
  /** Aborts when the run is cancelled or has to stop here, whichever comes first. */
  readonly signal: AbortSignal = this.#controller.signal;
  /** Why the run was cancelled; its own code ends it. Set by `cancel` alone. */
  cancelled: SluiceError | undefined;
  /** Why every further step rejects here. Set by `stop` alone. */
  stopped: SluiceError | undefined;
  /** Why a person interrupted what the run does now; the run itself continues. */
  interrupted: SluiceError | undefined;

  /** Only the first reason counts. */
  cancel(reason: SluiceError): void {
    if (this.cancelled !== undefined) return;
    this.cancelled = reason;
    this.#notify(reason);
  }

  interrupt(reason: SluiceError): void {
    if (this.interrupted !== undefined) return;
    this.interrupted = reason;
    this.listener?.controlChanged();
  }

  /** What was interrupted has ended. */
  continued(): void {
    this.interrupted = undefined;
  }

  stop(reason: SluiceError): void {
    if (this.stopped !== undefined) return;
    this.stopped = reason;
    this.#notify(reason);
  }

  #notify(reason: SluiceError): void {
    this.#controller.abort(reason);
    this.listener?.controlChanged();
  }
}

/** The code of a stop that leaves steps their grace period; after any other stop, nothing can be recorded. */
export const SUSPENDED = "run_stopped";

export interface Wait {
  /** What the program rests for; one that waits for neither works. */
  readonly rest?: Exclude<Rest["kind"], "children">;
  /** Of a rest because of a fault. */
  readonly fault?: ExecutionFault;
  /** The latest end of the wait, in epoch milliseconds. */
  readonly until?: number | undefined;
  /** Whether the wait is over; called again whenever the store may have changed. */
  readonly arrived?: () => Promise<boolean>;
  /** Called if it is not over at once. */
  readonly begun?: (() => void) | undefined;
}

/**
 * Waits until `arrived`, until the time, or until the run is cancelled or interrupted. Rejects if the run has to stop. Returns whether
 * there was nothing to wait for.
 */
export async function waitForSignal(
  { control, clock, tree }: StepContext,
  { rest: kind, fault, until, arrived, begun }: Wait,
): Promise<boolean> {
  if (arrived !== undefined && (await arrived())) return true;
  begun?.();
  const rest: Rest | undefined = kind === undefined ? undefined : { kind, until, fault };
  let ended = false;
  let disarm: (() => void) | undefined;
  let unsubscribe: (() => void) | undefined;
  let listener: CancellationListener | undefined;
  try {
    if (rest !== undefined) tree.rest(rest);
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
      // A signal that was accepted before a suspension counts: only this process may know what proves it.
      const stop = (why: SluiceError): void => {
        if (why.code !== SUSPENDED || kind !== "signal" || arrived === undefined) reject(why);
        else
          tree
            .sent()
            .then(arrived)
            .then(
              (isThere) => (isThere ? resolve() : reject(why)),
              () => reject(why),
            );
      };
      const controlChanged = (): void => {
        if (control.stopped !== undefined) stop(control.stopped);
        else if (control.cancelled !== undefined || control.interrupted !== undefined) resolve();
      };
      listener = { controlChanged };
      control.listener = listener;
      if (arrived !== undefined) unsubscribe = tree.onSignal(() => check.request());
      if (until !== undefined) arm(until);
      controlChanged();
      if (!control.signal.aborted && control.interrupted === undefined) check.request();
    });
  } finally {
    ended = true;
    if (rest !== undefined) tree.wake(rest);
    disarm?.();
    unsubscribe?.();
    if (control.listener === listener) control.listener = undefined;
  }
  return false;
}
