import type { Json } from "../../base/json.ts";
import type { JournalRecord, OpenRequest, ReceivedSignal, RunEnd, SignalMessage, SignalOutcome } from "../seam.ts";

/** A run's row. All other facts about a run are in its records. */
export interface RunRow {
  readonly runId: string;
  /** The root of the tree; ownership covers the whole tree. */
  readonly rootId: string;
  readonly parentId?: string;
  readonly createdAt: number;
  readonly input: Json;
  readonly end?: RunEnd;
  readonly records: number;
  readonly head: string;
  /** The root's owner, and whether it is alive now. */
  readonly owner?: { readonly id: string; readonly label: string; readonly live: boolean };
  /** Of a root: the last `wakeAt` that was committed. */
  readonly wakeAt?: number;
  /** A request to cancel the run. */
  readonly cancel?: { readonly reason: string; readonly by: string; readonly at: number };
}

export interface NewRunRow {
  readonly runId: string;
  readonly rootId: string;
  readonly parentId?: string;
  readonly createdAt: number;
  readonly input: Json;
}

/** One atomic commit: a record, and what it changes. */
export interface Commit {
  readonly runId: string;
  /** The epoch that `create` or `claim` returned for the root; an older one is refused with `ownership_lost`. */
  readonly epoch: number;
  readonly record: JournalRecord;
  /** One that is open already is opened again: the answers to it so far no longer count, and it takes another one. */
  readonly opened: readonly OpenRequest[];
  /** Ids of requests that this record closes. */
  readonly closed: readonly string[];
  readonly end?: RunEnd;
  /** From when the root has to continue without an owner, in epoch milliseconds; 0 is at once, null never. Kept if undefined. */
  readonly wakeAt?: number | null | undefined;
}

/** An open request, and whether it has an answer, which its run has not recorded yet. */
export interface StoredRequest extends OpenRequest {
  readonly answered: boolean;
}

/** A run that is added with all its records. */
export interface WholeRun {
  readonly row: NewRunRow;
  readonly records: readonly JournalRecord[];
  readonly head: string;
  readonly end?: RunEnd;
}

/** What may have changed: `records` if records were appended and nothing else. */
export type StoreChange = "records" | "any";

/**
 * Stores journals. One instance is one owner: a process, or a host in it.
 * Methods may be synchronous or not. They throw SluiceErrors of class Host; a failed call changes nothing.
 */
export interface JournalStore {
  /** Unique for this instance and never reused. */
  readonly ownerId: string;
  /** The folder that holds the journals, if they are on disk. */
  readonly folder?: string;
  /** Adds a root run that this instance then owns, or a child in a tree that it owns, with its first record. Throws `run_exists`. Returns the epoch. */
  create(
    run: NewRunRow,
    commit: Omit<Commit, "epoch" | "runId"> & { readonly epoch?: number },
  ): Promise<number> | number;
  /** Atomically adds a root without an owner and its descendants, parents first. Throws `run_exists`. */
  createWhole(runs: readonly WholeRun[]): Promise<void> | void;
  /** Makes this instance the owner of a root. Throws `run_owned` while another owner lives, and `run_unknown`. Returns the new epoch. */
  claim(rootId: string): Promise<number> | number;
  /** Gives up ownership of a root. Not an error if another instance owns it. */
  release(rootId: string): Promise<void> | void;
  /** Throws `ownership_lost`, also if the record is not the next one, and `run_finished` if the run has ended. */
  append(commit: Commit): Promise<void> | void;
  run(runId: string): Promise<RunRow | undefined> | RunRow | undefined;
  /** At most `limit` roots, newest first; or one root and its descendants, in order of creation. */
  runs(rootId?: string, limit?: number): Promise<readonly RunRow[]> | readonly RunRow[];
  /** At most `limit` records with seq >= from, in order. Throws `run_unknown`. */
  records(runId: string, from: number, limit?: number): Promise<readonly JournalRecord[]> | readonly JournalRecord[];
  /**
   * At most `limit` roots without an end or a live owner whose `wakeAt` is at or before `now`, or for which a signal arrived since
   * they were claimed last; earliest first.
   */
  due(now: number, limit: number): Promise<readonly string[]> | readonly string[];
  /** The earliest `wakeAt` after `now` of a root without an end. */
  nextWake(now: number): Promise<number | undefined> | number | undefined;
  /** Adds a signal. An open request takes one answer: the first that is committed, and none after the `until` of its body. */
  putSignal(runId: string, message: SignalMessage, at: number): Promise<SignalOutcome> | SignalOutcome;
  /** All signals of a name, in order of arrival. Signals are never removed: the n-th wait reads the n-th one. */
  signals(runId: string, name: string): Promise<readonly ReceivedSignal[]> | readonly ReceivedSignal[];
  /** Records a request to cancel, which the owner sees through `onChange`. False if the run is unknown. */
  requestCancel(runId: string, reason: string, by: string, at: number): Promise<boolean> | boolean;
  /** Open requests of one tree or of all, oldest first. A run that ended has none. */
  requests(rootId?: string): Promise<readonly StoredRequest[]> | readonly StoredRequest[];
  /**
   * Removes those roots that ended and have no live owner, with their descendants, requests, signals and unshared texts. Returns
   * the removed roots. After a failure some may be removed, each of them completely.
   */
  remove(rootIds: readonly string[]): Promise<readonly string[]> | readonly string[];
  /**
   * Calls the listener, which must not throw, when any owner may have committed or claimed something. Checks for other processes at
   * most every 25 ms.
   */
  onChange(listener: (what?: StoreChange) => void): () => void;
  close(): Promise<void> | void;
}
