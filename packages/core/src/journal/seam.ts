import type { Json, JsonObject } from "../base/json.ts";
import type { Usage } from "../definition/result.ts";
import type { EventDraft, SluiceEvent } from "./events.ts";

/** The argument of a step's function. */
export interface StepCall {
  /** Aborts when the run is cancelled, when it is suspended (after the step's grace period), or when this process loses ownership. */
  readonly signal: AbortSignal;
  /** The open record of this step. If its incarnation is not the runner's, an earlier process wrote it. */
  readonly opened?: { readonly incarnation: string; readonly intent?: Json; readonly cost?: StepCost };
  /** Only in a replay: the recorded outcome of this step, used instead of reading the outside world. */
  readonly recorded?: RecordedOutcome;
  /** Adds an event to the step's done record. */
  event(draft: EventDraft): void;
  /**
   * The signals that the step may take: received and not yet taken, in order. Empty without `takes`. `name` is one of its names, by
   * default the first.
   */
  signals(name?: string): Promise<readonly ReceivedSignal[]> | readonly ReceivedSignal[];
  /** Keeps the run owned by this process until `work` settles, for a tool that ignores its abort signal. */
  hold(work: Promise<unknown>): void;
}

export interface StepOptions<T extends Json = Json> {
  /**
   * Commits an open record before the function runs: its events, the intent that recovery needs, and the most that the step
   * can use, which counts in full if the process ends before the step does.
   */
  readonly open?: { readonly events: readonly EventDraft[]; readonly intent?: Json; readonly cost?: StepCost };
  /** What the step used, recorded beside its value. Called once, with the new value; not for a recorded one. */
  readonly cost?: (value: T) => StepCost | undefined;
  /** How long the step may continue when the run is suspended before its signal aborts, in milliseconds. Default: 0. */
  readonly graceMs?: number;
  /** Lets the step take signals of these names without waiting. They count as taken when the step's record is committed. */
  readonly takes?: readonly SignalsTaken[];
  /**
   * Whether the step is a decision, which a replay runs again and compares. Any other step reads or changes the outside world:
   * a replay returns its recorded value and never calls its function.
   */
  readonly decides?: (recorded: RecordedOutcome) => boolean;
}
/** What a step used, and how long its execution and its run had been running after it, in milliseconds without waits. */
export type StepCost = Partial<Usage> & {
  readonly stateMs?: number;
  /** Of the root. */
  readonly runMs?: number;
  /** Of the runs of other pipelines that the step is in, and of the executions that started them, the outermost first. */
  readonly aroundMs?: readonly number[];
};
/** A step's done record: the JSON text of its value, and its events. */
export interface RecordedOutcome {
  readonly value: string;
  readonly events: readonly SluiceEvent[];
}
export interface SignalsTaken {
  readonly name: string;
  /** How many of the oldest signals from `signals` the recorded value takes. Called for recorded steps too. */
  readonly count: (value: Json) => number;
}

/** That a person wants what a run does now to stop. */
export interface Interruption {
  /** Empty if no reason was given. */
  readonly reason: string;
  readonly by: string;
  /** How many the run has received, with this one. */
  readonly count: number;
}

/** A child run as data. It runs the same program as its parent, with its own input and journal. */
export interface ChildRun {
  /** Unique among its siblings; part of the child's run id, which encodes it. */
  readonly key: string;
  readonly input: Json;
  /** The same input in the form of a recorded one, which an earlier version may have written. A replay compares them. */
  readonly inputAs?: (recorded: Json) => Json;
  /** Written in the child's first record. */
  readonly events: readonly EventDraft[];
}

/** How a run ended. A run ends at most once. */
export interface RunEnd {
  readonly status: "completed" | "failed" | "cancelled";
  /** The program's result. */
  readonly value: Json;
}

/** How a child ended, with the head of its hash chain, which the parent's record keeps. */
export interface SiblingEnd extends RunEnd {
  readonly records: number;
  readonly head: string;
}

export interface RunChildrenOptions {
  /**
   * `cancel`: the first child that does not complete cancels the others. `settle`: every child runs to its end. `any`: the first
   * child that completes cancels the others. All are awaited in every case.
   */
  readonly onFailure: "cancel" | "settle" | "any";
  /** Whether an ended child counts as failed. */
  readonly failed: (end: RunEnd) => boolean;
  readonly open: { readonly events: readonly EventDraft[] };
  /** Events of the record that joins the children. */
  readonly joined: (children: Readonly<Record<string, SiblingEnd>>) => readonly EventDraft[];
}

/** Ends what a person interrupts. Returns its events. */
export type InterruptionListener = (interruption: Interruption) => readonly EventDraft[];

/**
 * The interface that all run code is written against. A host implements it.
 * Steps are numbered in call order. A resume returns a recorded step's value instead of running it again.
 * Every method rejects with a Host error if its record cannot be written or this process lost the run. Never catch it:
 * any rejection of a step stops the run in this process, and it can be resumed.
 */
export interface StepRunner {
  readonly runId: string;
  /** A new value each time a process starts or resumes the run. */
  readonly incarnation: string;
  /** Aborts on cancel (a reason of class Cancellation; steps still work, to finish in order) and when the run must stop here (class Host; every further step rejects). */
  readonly signal: AbortSignal;
  /** Whether it still returns what earlier processes recorded. */
  readonly recovering: boolean;
  /**
   * Calls a listener once before the next step that is not recorded, and waits for it, if another run of the tree still returns recorded
   * steps then, or `always`. What it gets resolves when none does. The last listener counts.
   */
  beforeWork(listener: (recovered: Promise<void>) => Promise<void>, always: boolean): void;
  /**
   * Calls a listener if a person interrupts the run while it executes no step, at once if that has happened: the next step is what ends
   * early. Returns the unsubscriber. The last listener counts.
   */
  whenInterrupted(listener: () => void): () => void;
  /** Runs `fn` at least once and records its value once. `fn` returns expected failures as values; a rejection stops the run, which can be resumed. */
  run<T extends Json>(stepId: string, fn: (call: StepCall) => Promise<T> | T, options?: StepOptions<T>): Promise<T>;
  /** The recorded clock, epoch milliseconds. */
  now(stepId: string): Promise<number>;
  /** Waits until a point in time. Returns early when the run is cancelled. */
  sleepUntil(stepId: string, epochMs: number): Promise<void>;
  /**
   * Sleeps until a point in time, across processes: the store knows when the run has to continue. Returns early when the run is
   * cancelled, and when there is a signal of `signal` that no step took.
   */
  sleep(stepId: string, epochMs: number, options: SleepOptions): Promise<SleepEnd>;
  /**
   * Waits for the run to be resumed after a fault that only time or a person can end. The run is suspended with it once nothing else
   * in its tree can work. Returns in the process that resumes the run, at `retryAt` if the run still works in this one then, and
   * early when the run is cancelled or a person interrupts it.
   */
  awaitResume(stepId: string, options: AwaitResumeOptions): Promise<AwaitResumeEnd>;
  /** Waits for a signal of this name, including one received earlier. Undefined after the timeout or when the run is cancelled. */
  waitForSignal(name: string, options?: WaitOptions): Promise<ReceivedSignal | undefined>;
  /** The signals of this name that were received and not yet taken, without waiting. */
  takeSignals(stepId: string, name: string): Promise<readonly ReceivedSignal[]>;
  /** Runs children concurrently, each with its own journal, and waits for all of them. */
  runChildren(
    stepId: string,
    children: readonly ChildRun[],
    options: RunChildrenOptions,
  ): Promise<Readonly<Record<string, SiblingEnd>>>;
  /**
   * Makes what follows interruptible by a person, until the returned function is called. An interruption ends the wait of the open
   * step and aborts its signal, as a cancel does, and calls the listener, whose events are recorded with that step; without an open
   * step, or while its result is appended, it waits for the next one. Recovery calls the listener at the same step. One that arrives
   * before the end calls it again. Only the listener that was added last is called. Without one, an interruption from now on only
   * suspends the run, until the returned function is called or a listener is added.
   */
  interruptible(listener: InterruptionListener | undefined): () => void;
  /**
   * Suspends the whole run after an interruption, once everything else that was interrupted has come to its end. Never resolves:
   * rejects when the run stops.
   */
  suspend(): Promise<never>;
  /** Sends live data such as streamed text, which is never journaled. */
  emit(channel: string, chunk: Json): void;
  /** Whether `emit` has a listener now. */
  heard(): boolean;
}

export interface SleepOptions {
  readonly signal?: string;
  /** Events of the record that opens the sleep, and of the one that ends it. */
  readonly open: { readonly events: readonly EventDraft[] };
  readonly ended: (by: SleepEnd) => readonly EventDraft[];
}
/** What ended a sleep. */
export type SleepEnd = "time" | "signal" | "cancelled";

/**
 * Why part of a run cannot continue now, such as a provider that does not answer. A type, since it is recorded. `reason` says whose
 * fault it is, `code` is stable, and `message` is for people.
 */
export type RunFault = {
  readonly reason: FaultReason;
  readonly code: string;
  readonly message: string;
  readonly detail?: Json;
  /** When it may have ended, in epoch milliseconds, where that is known. */
  readonly retryAt?: number;
};
export type FaultReason = "provider";
/** A fault of a suspended run, and the execution that waits because of it. */
export type ExecutionFault = RunFault & { readonly runId: string; readonly executionId: string };
export interface AwaitResumeOptions {
  readonly fault: ExecutionFault;
  /** Events of the record that opens the wait, and of the one that ends it. */
  readonly open: { readonly events: readonly EventDraft[] };
  readonly ended: (by: AwaitResumeEnd) => readonly EventDraft[];
}
/** What ended the wait. */
export type AwaitResumeEnd = "resume" | "time" | "cancelled";

export interface WaitOptions {
  /** Milliseconds from when the wait was first entered, by the recorded clock. */
  readonly timeoutMs?: number;
  /** The same as a point in time, in epoch milliseconds. The store then knows when the run has to continue. */
  readonly until?: number | undefined;
  /** Called when the wait begins; not for one whose end is recorded, or whose signal is already there. */
  readonly begun?: () => void;
  /**
   * What is recorded of the signal: its payload without what must not be recorded, such as known secrets, and events. Called once,
   * before that. `isEarlier`: the signal was there before this process waited for it.
   */
  readonly take?: (
    payload: Json,
    isEarlier: boolean,
  ) => { readonly payload: Json; readonly events: readonly EventDraft[] };
}

/** A signal as its receiver sees it. */
export interface ReceivedSignal {
  readonly payload: Json;
  readonly by: string;
  /** Epoch milliseconds. */
  readonly at: number;
}

/** The code that a host runs for a run and each of its children. It must not keep state between calls. */
export type RunProgram = (steps: StepRunner, input: Json) => Promise<ProgramEnd>;
/** A program's end; its events go into the run's last record. */
export interface ProgramEnd extends RunEnd {
  readonly events: readonly EventDraft[];
}

export interface NewRun {
  readonly runId: string;
  readonly input: Json;
  readonly events: readonly EventDraft[];
  readonly program: RunProgram;
}

/** A run in this process. */
export interface RunTask {
  readonly runId: string;
  /** The run's end, or why it was suspended here. Rejects with a Host error if the journal failed; the run can then be resumed. */
  readonly settled: Promise<
    | { readonly end: RunEnd }
    | {
        readonly suspended: SuspendReason;
        readonly wakeAt?: number | undefined;
        /** What parts of the run wait for, besides people and time. */
        readonly faults?: readonly ExecutionFault[];
      }
  >;
  /**
   * Stops the run here without running more of its code; it can be resumed. Waits for steps within their grace period.
   * Does not wait for code that ignores its signal, which delays a resume until it ends. A run that only sleeps is suspended as
   * `sleeping`. `due`: an interrupted run that has slept before is due at once.
   */
  suspend(reason: SuspendReason, options?: { readonly due?: boolean }): Promise<void>;
  /** Calls the listener when nothing of the run's tree works, since it sleeps or waits for a signal, now or later. Returns the unsubscriber. */
  onAsleep(listener: (asleep: Asleep) => void): () => void;
  /** Calls the listener with live data of this run and its children. Returns the unsubscriber. */
  onLive(listener: (chunk: LiveChunk) => void): () => void;
}
export interface LiveChunk {
  readonly runId: string;
  readonly channel: string;
  readonly chunk: Json;
}
/** A run that nothing but time or a signal continues. */
export interface Asleep {
  /** When it continues by itself, in epoch milliseconds; undefined if only a signal continues it. */
  readonly wakeAt: number | undefined;
  /** How many of its steps wait for a signal, such as an answer. */
  readonly waiting: number;
}
/**
 * `sleeping`: until a time. `waiting`: for an answer. `interrupted`: something stopped it. `provider`: a provider failed, and nothing
 * else of the run can work.
 */
export type SuspendReason = "sleeping" | "waiting" | "interrupted" | FaultReason;

/** An open request, as every process sees it. */
export interface OpenRequest {
  readonly requestId: string;
  readonly runId: string;
  readonly kind: RequestKind;
  /** Digest of the request's subject; an answer with another digest is refused. */
  readonly digest: string;
  /** The tool and its arguments, or the question. A question with a deadline has it as `until`, in epoch milliseconds. */
  readonly body: JsonObject;
  /** Epoch milliseconds. */
  readonly openedAt: number;
}
export type RequestKind = "grantStageTool" | "approveTransition" | "askUser" | "humanState";

/** A message to a run from outside it. */
export interface SignalMessage {
  /** `request/<requestId>` answers a request, once; any other name is a buffered message. */
  readonly name: string;
  readonly payload: Json;
  /** For answers: the digest that the answer is about. */
  readonly digest?: string;
  readonly by: string;
}
/** `expired`: the deadline of the request has passed. */
export type SignalOutcome = "accepted" | "already_answered" | "unknown" | "digest_mismatch" | "expired";

/** One run as `list` shows it. */
export interface RunSummary {
  readonly runId: string;
  readonly parentId?: string;
  /** A run without an end is `running` while its owner lives, else `suspended`. */
  readonly status: RunEnd["status"] | "running" | "suspended";
  /** Why it is suspended. */
  readonly suspended?: SuspendReason;
  /** The faults that it was suspended with. */
  readonly faults?: readonly ExecutionFault[];
  /** When a run that sleeps continues, in epoch milliseconds. */
  readonly wakeAt?: number;
  readonly createdAt: number;
  readonly input: Json;
  readonly end?: RunEnd;
  /** The number of records; `head` is the hash of the last one. */
  readonly records: number;
  readonly head: string;
  /** The owner's description of itself (its process id), while it lives. */
  readonly owner?: string;
}

export interface EventQuery {
  /** Only events after this event id. It filters its own run only: with `children`, the events of other runs are complete. */
  readonly after?: string;
  /** Continues with new events until the run ends. */
  readonly follow?: boolean;
  /** Includes the events of child runs, in the order of their tree: a child's before the record that joins it, the root's end last. */
  readonly children?: boolean;
  readonly signal?: AbortSignal;
}

/** Selects finished runs to remove. With both limits, a run that either one keeps stays. */
export interface PruneQuery {
  /** Only runs that ended before this, in epoch milliseconds. */
  readonly endedBefore?: number;
  /** Keeps this many of the newest finished runs. */
  readonly keep?: number;
  /** Reports what would be removed and removes nothing. */
  readonly dryRun?: boolean;
}
/** A removed run, or one that a dry run would remove. */
export interface PrunedRun {
  readonly runId: string;
  readonly status: RunEnd["status"];
  readonly createdAt: number;
  readonly endedAt: number;
  /** Counts the run and its descendants. */
  readonly journals: number;
  readonly records: number;
}

/** The part of a run that is copied: its records before `before`, and the children that they started. */
export interface CopiedPart {
  /** The seq of its first record that is not copied. Only a step that runs children may be open there. */
  readonly before: number;
  /** Keys of children of the open step that start over. Children that did not complete always start over, apart from `inside`. */
  readonly again?: readonly string[];
  /** A child of the open step that is copied in part, and continues from there. */
  readonly inside?: CopiedPart & { readonly key: string };
}

/** A new run that starts with copied records of another. */
export interface RunCopy extends CopiedPart {
  readonly runId: string;
  /** The run to copy. It may have any status and is only read. */
  readonly of: string;
  /** Events of the new run's first record, which has the time of the copied run's first record. */
  readonly started: readonly EventDraft[];
  /** Events of the record that ends the copied ones. */
  readonly forked: readonly EventDraft[];
}

export interface ResumeRunOptions {
  /** More data for the `run.resumed` event, besides the incarnation. */
  readonly said?: JsonObject;
  /** The result of an earlier `journal` call, which saves reading it again; it is verified the same way. If the run or a child has changed since, the resume is refused with `run_continued_elsewhere`, since facts derived from the journals, such as the remaining budget, are stale. */
  readonly read?: readonly RunJournal[];
}

/** All operations on runs, for the process that owns them and for others. */
export interface RunHost {
  /** The folder that holds the journals, if they are on disk. Tools may neither read nor write it. */
  readonly folder?: string;
  start(run: NewRun): Promise<RunTask>;
  /**
   * Atomically creates a run without an owner from the first records of another; `resume` continues it. Signals to the other
   * run are not copied, except those that its records took. Refused with `run_unknown`, `run_is_child`, `run_exists`,
   * `journal_damaged`, or with `copy_point` if a step is open there.
   */
  copy(copy: RunCopy): Promise<void>;
  /** Resumes a run that has no live owner. Refused with `run_owned`, `run_finished`, `run_unknown` or `run_continued_elsewhere`. */
  resume(runId: string, program: RunProgram, options?: ResumeRunOptions): Promise<RunTask>;
  signal(runId: string, message: SignalMessage): Promise<SignalOutcome>;
  /** Asks the live owner to cancel. Without one, takes ownership and ends the run and its children as cancelled, without running its code. */
  cancel(runId: string, reason: string, by: string): Promise<"requested" | "cancelled" | "finished" | "unknown">;
  /** Waits for the run's end, in any process. */
  result(runId: string, options?: { readonly signal?: AbortSignal }): Promise<RunEnd>;
  /** Open requests of one run and its children, or of all runs, oldest first. */
  requests(runId?: string): Promise<readonly OpenRequest[]>;
  events(runId: string, query?: EventQuery): AsyncIterable<SluiceEvent>;
  get(runId: string): Promise<RunSummary | undefined>;
  /** Root runs, newest first. */
  list(options?: { readonly limit?: number }): Promise<readonly RunSummary[]>;
  /**
   * Roots without a live owner that have to continue: their time to wake has come, a signal arrived for them, or their process died
   * after they had slept. At most `limit`, those that are due for longest first. `next` is when the next sleeping run is due. `at` is
   * the time to look at, in epoch milliseconds; default now.
   */
  due(limit: number, at?: number): Promise<{ readonly runs: readonly string[]; readonly next: number | undefined }>;
  /** Permanently removes finished runs with their children. Never removes an unfinished or owned run. */
  prune(query: PruneQuery): Promise<readonly PrunedRun[]>;
  /** Calls the listener when the store may have changed. Returns the unsubscriber. */
  onChange(listener: () => void): () => void;
  /** The records of one run without its children, from seq `from` (default 0), at most `limit`. Rejects with `run_unknown`. */
  records(runId: string, from?: number, limit?: number): Promise<readonly JournalRecord[]>;
  /** A run and its descendants with their numbers of records, all at one moment, parents first; empty if there is no such run. */
  tree(runId: string): Promise<readonly TreeRun[]>;
  /** The journals of a run and its children, for audit and export. */
  journal(runId: string): Promise<readonly RunJournal[]>;
  /** Suspends the runs of this host and releases the store and its locks. Pending waits for results reject. */
  close(): Promise<void>;
}

/** One run of a tree, with how many records it has. */
export interface TreeRun {
  readonly runId: string;
  readonly parentId?: string | undefined;
  readonly records: number;
}

/** One run's records, with what its row claims about them. */
export interface RunJournal {
  readonly runId: string;
  readonly parentId?: string;
  readonly input: Json;
  readonly records: readonly JournalRecord[];
  readonly claimed: { readonly records: number; readonly head: string };
  readonly end?: RunEnd;
}

/** Journals of version 1 have `life` for `lifecycle`; it is never written. */
export type RecordPhase = "open" | "done" | "lifecycle" | "life";

/** One record of a journal. `value` and `events` are the JSON texts that were hashed. */
export interface JournalRecord {
  /** Position among the run's records, from 0. */
  readonly seq: number;
  /** Position among the run's steps, from 0; -1 for lifecycle records, which are not steps. */
  readonly ordinal: number;
  readonly stepId: string;
  readonly phase: RecordPhase;
  readonly incarnation: string;
  /** JSON text of the step's value (done) or intent (open); empty if there is none. */
  readonly value: string;
  /** JSON text of the step's cost, if any, and of the events, without ids and without fields that equal those of the event before; see `readEvents`. */
  readonly events: string;
  /** SHA-256, hex, over the record and the hash before it. */
  readonly hash: string;
}
