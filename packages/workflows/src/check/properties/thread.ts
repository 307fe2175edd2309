// Where a run is, without what it has counted and what its context holds.

/** What a run or a branch has counted, where a search counts. */
export interface Counts {
  readonly visits: Readonly<Record<string, number>>;
  readonly hops: number;
}

/** One line of work: the run itself, or a child of one of its fan-outs. */
export type Thread = Ready | Working | Forked | Inside | Ended;

/** A child that has not entered its state. */
export interface Ready {
  readonly is: "ready";
  readonly state: string;
  readonly terminal?: string;
  readonly isSibling?: true;
  readonly counts?: Counts;
}
export interface Working {
  readonly is: "working";
  readonly state: string;
  /** What interrupts suspended, the innermost last. */
  readonly suspended: readonly Suspension[];
  /** Of a branch: the state that completes it. */
  readonly terminal?: string;
  /** A child of a fan-out, whose routes are not used. */
  readonly isSibling?: true;
  readonly counts?: Counts;
}
export interface Suspension {
  readonly state: string;
  readonly interrupt: string;
}
/** Waits for its children. */
export interface Forked {
  readonly is: "forked";
  /** The state that forked, whose failure rows apply. */
  readonly state: string;
  readonly terminal?: string;
  readonly children: readonly NamedThread[];
  /** `all`: one failure fails the rest. `any`: one completion ends the rest. `settle`: all run to their ends. */
  readonly policy: "all" | "any" | "settle";
  /** Whether there are children in which nothing that matters can happen. They are not followed. */
  readonly others: boolean;
  readonly join: string;
  readonly onFail?: string;
  readonly counts?: Counts;
}
export interface NamedThread {
  readonly key: string;
  readonly thread: Thread;
}
/** The run of another pipeline. */
export interface Inside {
  readonly is: "inside";
  readonly pipeline: string;
}
export interface Ended {
  readonly is: "completed" | "failed";
}

export const COMPLETED: Ended = { is: "completed" };
export const FAILED: Ended = { is: "failed" };

export function isEnded(thread: Thread): thread is Ended {
  return thread.is === "completed" || thread.is === "failed";
}
