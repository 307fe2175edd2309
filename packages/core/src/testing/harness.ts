import type { Clock } from "../base/clock.ts";
import type { JournalRecord, RecordPhase, RunHost } from "../journal/seam.ts";

/** A store of runs, made new for one test: what the hosts of several processes share. */
export interface ConformanceStore {
  /** A host of its own on the store, as another process would have one. */
  connect(): Promise<ConformanceHost>;
  /** The test is over, and every host closed or crashed. */
  dispose(): Promise<void>;
}

/** One host, with what a test must be able to do to it. */
export interface ConformanceHost {
  readonly host: RunHost;
  /**
   * Takes its store away without a word, as a killed process would lose it: nothing is suspended, no further record of it
   * is ever written, and its runs have no live owner from now on.
   */
  crash(): Promise<void>;
  /**
   * Lets the store take it for dead while it goes on, as after a long pause: others may take its runs, and it does not hear
   * of that. The returned function lets it hear of changes again.
   */
  loseLock(): Promise<() => void>;
  /** From now on decides over every record: written, not written, or written and reported as not. */
  failWrites(decide: WriteDecision | undefined): void;
  /** From now on hands out journals changed so, as if somebody had edited them in the store. */
  tamper(change: (runId: string, records: readonly JournalRecord[]) => readonly JournalRecord[]): void;
}

export interface WriteAttempt {
  readonly runId: string;
  readonly stepId: string;
  readonly phase: RecordPhase;
}
/** `before`: nothing of the record is kept. `after`: all of it is kept, and the host is told that nothing was. */
export type WriteFault = "before" | "after";

/** A promise holds the record back until it is settled. */
export type WriteDecision = (write: WriteAttempt) => Promise<WriteFault | undefined> | WriteFault | undefined;

/** Opens a new store. Recorded time and the timers of runs go by `clock`, everything else (locks, polls) by real time. */
export type OpenConformanceStore = (clock: Clock) => Promise<ConformanceStore>;
