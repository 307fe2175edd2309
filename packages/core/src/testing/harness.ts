import type { Clock } from "../base/clock.ts";
import type { JournalRecord, RecordPhase, RunHost } from "../journal/seam.ts";

/** A store of runs, created for one test and shared by the hosts of several processes. */
export interface ConformanceStore {
  /** Opens another host on the store, as a separate process would. */
  connect(): Promise<ConformanceHost>;
  /** Called after the test, when every host is closed or crashed. */
  dispose(): Promise<void>;
}

/** One host, with the faults that a test can inject. */
export interface ConformanceHost {
  readonly host: RunHost;
  /**
   * Cuts the host off from its store, as a kill of its process would: nothing is suspended, the host writes no further
   * record, and its runs have no live owner afterwards.
   */
  crash(): Promise<void>;
  /**
   * Makes the store presume the host dead while it continues, as after a long pause: other hosts may claim its runs, and
   * it receives no change notifications. The returned function restores the notifications.
   */
  loseLock(): Promise<() => void>;
  /** Sets what happens to each later write: stored, not stored, or stored and reported as failed. */
  failWrites(decide: WriteDecision | undefined): void;
  /** Changes every journal that the host reads from now on, as if its stored records had been edited. */
  tamper(change: (runId: string, records: readonly JournalRecord[]) => readonly JournalRecord[]): void;
}

export interface WriteAttempt {
  readonly runId: string;
  readonly stepId: string;
  readonly phase: RecordPhase;
}
/** `before`: the record is not stored. `after`: the record is stored, and the write is reported as failed. */
export type WriteFault = "before" | "after";

/** A promise delays the write until it settles. */
export type WriteDecision = (write: WriteAttempt) => Promise<WriteFault | undefined> | WriteFault | undefined;

/** Opens a new store. Recorded times and run timers use `clock`; everything else (locks, polling) uses real time. */
export type OpenConformanceStore = (clock: Clock) => Promise<ConformanceStore>;
