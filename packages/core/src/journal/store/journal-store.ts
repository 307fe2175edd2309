import type { Json } from "../../base/json.ts";
import type { JournalRecord, OpenRequest, ReceivedSignal, RunEnd, SignalMessage, SignalOutcome } from "../seam.ts";

/** A run's row. Everything else about a run is in its records. */
export interface RunRow {
  readonly runId: string;
  /** The run at the top of the tree; ownership is held for the whole tree. */
  readonly rootId: string;
  readonly parentId?: string;
  readonly createdAt: number;
  readonly input: Json;
  readonly end?: RunEnd;
  readonly records: number;
  readonly head: string;
  /** Who owns the root, and whether that owner lives now. */
  readonly owner?: { readonly id: string; readonly label: string; readonly live: boolean };
  /** Somebody asked for the run's end. */
  readonly cancel?: { readonly reason: string; readonly by: string; readonly at: number };
}

export interface NewRunRow {
  readonly runId: string;
  readonly rootId: string;
  readonly parentId?: string;
  readonly createdAt: number;
  readonly input: Json;
}

/** What one commit changes besides adding its record; all of it or nothing. */
export interface Commit {
  readonly runId: string;
  /** The epoch `create` or `claim` returned for the root: an older one is refused with `ownership_lost`. */
  readonly epoch: number;
  readonly record: JournalRecord;
  readonly opened: readonly OpenRequest[];
  /** Ids of requests that this record closes. */
  readonly closed: readonly string[];
  readonly end?: RunEnd;
}

/** A run that is added with all its records. */
export interface WholeRun {
  readonly row: NewRunRow;
  readonly records: readonly JournalRecord[];
  readonly head: string;
  readonly end?: RunEnd;
}

/**
 * Where journals are kept; one instance is one owner (a process, or a host in it).
 * Methods may be synchronous or not. They throw SluiceError of class Host: nothing of a failed call is kept.
 */
export interface JournalStore {
  /** Unique for this instance; an owner that is gone never comes back under the same id. */
  readonly ownerId: string;
  /** The folder on this disk that holds the journals, if any. */
  readonly folder?: string;
  /** Adds a root run owned by this instance, or a child of a tree it owns, with its first record. `run_exists` when the id is taken. Returns the epoch. */
  create(
    run: NewRunRow,
    commit: Omit<Commit, "epoch" | "runId"> & { readonly epoch?: number },
  ): Promise<number> | number;
  /** Adds a root that nobody owns and everything below it, parents first, in one go: all of it or nothing. `run_exists`. */
  createWhole(runs: readonly WholeRun[]): Promise<void> | void;
  /** Makes this instance the owner of a root. `run_owned` while another owner lives, `run_unknown`. Returns the new epoch. */
  claim(rootId: string): Promise<number> | number;
  /** Gives a root up, so that another owner can claim it at once. Not an error when it is not ours any more. */
  release(rootId: string): Promise<void> | void;
  /** `ownership_lost` also when the record is not the next one, `run_finished` when the run has its end. */
  append(commit: Commit): Promise<void> | void;
  run(runId: string): Promise<RunRow | undefined> | RunRow | undefined;
  /** Roots, newest first, at most `limit` of them; or one root and all its descendants, in order of creation. */
  runs(rootId?: string, limit?: number): Promise<readonly RunRow[]> | readonly RunRow[];
  /** Records with seq >= from, in order: all, or at most `limit` of them. `run_unknown`. */
  records(runId: string, from: number, limit?: number): Promise<readonly JournalRecord[]> | readonly JournalRecord[];
  /** Adds a signal. Answers compete: one unique row per open request, the first commit wins. */
  putSignal(runId: string, message: SignalMessage, at: number): Promise<SignalOutcome> | SignalOutcome;
  /** All signals of a name, in order of arrival. Nothing is ever taken out: the n-th wait reads the n-th. */
  signals(runId: string, name: string): Promise<readonly ReceivedSignal[]> | readonly ReceivedSignal[];
  /** Notes that somebody wants the run's end; the owner sees it through `onChange`. False when the run is unknown. */
  requestCancel(runId: string, reason: string, by: string, at: number): Promise<boolean> | boolean;
  /** Open requests, oldest first: of one tree of runs, or of all. A run that ended has none. */
  requests(rootId?: string): Promise<readonly OpenRequest[]> | readonly OpenRequest[];
  /**
   * Removes roots that have their end and no live owner, with everything below them: records, requests, signals, and texts that
   * nothing else names. Others stay. Returns those that are gone; with a failure some may be, each of them whole.
   */
  remove(rootIds: readonly string[]): Promise<readonly string[]> | readonly string[];
  /** Calls the listener, which must not throw, when anything may have been committed or claimed, here or by another owner. Cheap: at most one check per 25 ms across processes. */
  onChange(listener: () => void): () => void;
  close(): Promise<void> | void;
}
