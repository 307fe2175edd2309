import type { Json, JsonObject } from "../base/json.ts";
import type { EventDraft, SluiceEvent } from "./events.ts";

/** What a step's function is given. */
export interface StepCall {
  /** Aborts when the run is cancelled, when it is being suspended (after the step's grace), or when this process lost it. */
  readonly signal: AbortSignal;
  /** The open record of this step, ours or an earlier process's: compare its incarnation with the runner's. */
  readonly opened?: { readonly incarnation: string; readonly intent?: Json };
  /** In a replay alone: what this very step was recorded with. What it would read from the world comes from here. */
  readonly recorded?: RecordedOutcome;
  /** Gathers an event for the step's done record. */
  event(draft: EventDraft): void;
  /** The signals that the step may take: those that have come by now and were not taken yet, in order. None without `takes`. */
  signals(): Promise<readonly ReceivedSignal[]> | readonly ReceivedSignal[];
  /** Keeps the run owned by this process until `work` settles: for a tool that goes on after its result was given up. */
  hold(work: Promise<unknown>): void;
}

export interface StepOptions {
  /** Asks for an open record, committed before the function runs: what is announced, and the intent recovery will need. */
  readonly open?: { readonly events: readonly EventDraft[]; readonly intent?: Json };
  /** While the run is being suspended the step may go on this long, in milliseconds, before its signal aborts. 0 when omitted. */
  readonly graceMs?: number;
  /** Lets the step take signals of a name, without waiting, in its own record: what a crash keeps from it was not taken. */
  readonly takes?: SignalsTaken;
  /**
   * Whether the step is a decision, so that a replay runs its function anew and compares. A step without it reads the world or acts
   * on it: a replay hands back what is recorded, and its function is never called.
   */
  readonly decides?: (recorded: RecordedOutcome) => boolean;
}
/** What a step's record holds: the JSON text of its value, and its events. */
export interface RecordedOutcome {
  readonly value: string;
  readonly events: readonly SluiceEvent[];
}
export interface SignalsTaken {
  readonly name: string;
  /** How many of those that `signals` gave the recorded value has taken: the oldest so many. Asked on replay, too. */
  readonly count: (value: Json) => number;
}

/** A child of a fork: data, never a closure. It runs the same program as its parent, with an input and a journal of its own. */
export interface ChildRun {
  /** Unique in the fork, without a slash; part of the child's run id. */
  readonly key: string;
  readonly input: Json;
  /** Written in the child's first record. */
  readonly events: readonly EventDraft[];
}

/** How a run ended. Final: a run has at most one end. */
export interface RunEnd {
  readonly status: "completed" | "failed" | "cancelled";
  /** The program's own account of it. */
  readonly value: Json;
}

/** How one child of a fork ended, with the head of its chain, which the parent's record keeps. */
export interface SiblingEnd extends RunEnd {
  readonly records: number;
  readonly head: string;
}

export interface RunChildrenOptions {
  /** `cancel`: the first child that is not completed cancels the others, all are awaited; `settle`: all end by themselves. */
  readonly onFailure: "cancel" | "settle";
  /** Whether an ended child counts as a failure of the fork. */
  readonly failed: (end: RunEnd) => boolean;
  readonly open: { readonly events: readonly EventDraft[] };
  /** Events of the record that joins. */
  readonly joined: (children: Readonly<Record<string, SiblingEnd>>) => readonly EventDraft[];
}

/**
 * The seam all run code is written against. A host implements it: in memory, SQLite, or an engine for many machines.
 * Steps are numbered in the order they are asked for; on resume the recorded value is returned instead of running again.
 * Every method rejects with a Host error when the record cannot be written or this process lost the run: never catch it.
 * What a step rejects with ends the run here, resumable, whatever the program makes of it.
 */
export interface StepRunner {
  readonly runId: string;
  /** New whenever a process starts or takes up the run. */
  readonly incarnation: string;
  /** Aborts on cancel (reason of class Cancellation: steps may still be taken, to finish in order) and when the run has to stop here (class Host: every further step rejects). */
  readonly signal: AbortSignal;
  /** Runs `fn` at least once and records its value once. `fn` returns failures of the domain as values; a rejection stops the run, resumable. */
  run<T extends Json>(stepId: string, fn: (call: StepCall) => Promise<T> | T, options?: StepOptions): Promise<T>;
  /** The recorded clock, epoch milliseconds. */
  now(stepId: string): Promise<number>;
  /** Waits until a point in time, across processes. Returns early when the run is cancelled. */
  sleepUntil(stepId: string, epochMs: number): Promise<void>;
  /** Waits for a signal of this name; one that came early is kept. Undefined after the timeout or when the run is cancelled. */
  waitForSignal(name: string, options?: WaitOptions): Promise<ReceivedSignal | undefined>;
  /** The signals of this name that have come and were not taken yet, without waiting. */
  takeSignals(stepId: string, name: string): Promise<readonly ReceivedSignal[]>;
  /** Runs children side by side, each with its own journal, and waits for all of them. */
  runChildren(
    stepId: string,
    children: readonly ChildRun[],
    options: RunChildrenOptions,
  ): Promise<Readonly<Record<string, SiblingEnd>>>;
  /** Live only (streamed text): never journaled, never awaited. */
  emit(channel: string, chunk: Json): void;
  /** Whether anybody would hear an `emit` now: what nobody hears need not be made. */
  heard(): boolean;
}

export interface WaitOptions {
  /** Counted from the moment the wait was first entered, by the recorded clock. */
  readonly timeoutMs?: number;
  /** Takes out of a payload what must not be recorded, such as known secrets. Asked once, before the record. */
  readonly clean?: (payload: Json) => Json;
}

/** A signal as its receiver sees it: who sent what, and when. */
export interface ReceivedSignal {
  readonly payload: Json;
  readonly by: string;
  /** Epoch milliseconds. */
  readonly at: number;
}

/** What a host runs: written once against the seam, the same for a run and its children. It must not keep state between calls. */
export type RunProgram = (steps: StepRunner, input: Json) => Promise<ProgramEnd>;
/** The end as the program sees it; its events go into the run's last record. */
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
  /** How it ended, or that it was suspended here. Rejects with a Host error when the journal failed; the run stays resumable. */
  readonly settled: Promise<{ readonly end: RunEnd } | { readonly suspended: SuspendReason }>;
  /**
   * Stops the run here without running any more of its code; it can be resumed. Waits for writing steps within their grace.
   * Code that is deaf to its signal is not waited for, and keeps the run from being taken up until it ends.
   */
  suspend(reason: SuspendReason): Promise<void>;
  /** Live chunks of this run and its children. Returns the unsubscriber. */
  onLive(listener: (chunk: LiveChunk) => void): () => void;
}
export interface LiveChunk {
  readonly runId: string;
  readonly channel: string;
  readonly chunk: Json;
}
export type SuspendReason = "waiting" | "interrupted";

/** A request to a person, as the journal and every process see it. */
export interface OpenRequest {
  readonly requestId: string;
  readonly runId: string;
  readonly kind: RequestKind;
  /** Digest of what the request is about; an answer that names another digest is refused. */
  readonly digest: string;
  /** What is asked, for people and interactors: tool and arguments, or the question. */
  readonly body: JsonObject;
  /** Epoch milliseconds. */
  readonly openedAt: number;
}
export type RequestKind = "grantStageTool" | "approveTransition" | "askUser" | "humanState";

/** A message to a run from anybody who does not own it. */
export interface SignalMessage {
  /** `request/<requestId>` answers a request, once; any other name is a buffered message. */
  readonly name: string;
  readonly payload: Json;
  /** For answers: the digest the answer is about. */
  readonly digest?: string;
  readonly by: string;
}
export type SignalOutcome = "accepted" | "already_answered" | "unknown" | "digest_mismatch";

/** One run as `list` shows it. */
export interface RunSummary {
  readonly runId: string;
  readonly parentId?: string;
  /** Derived: a run without an end is `running` while its owner lives, else `suspended`. */
  readonly status: RunEnd["status"] | "running" | "suspended";
  /** Why it is suspended: somebody must answer, or it was stopped in between. */
  readonly suspended?: SuspendReason;
  readonly createdAt: number;
  readonly input: Json;
  readonly end?: RunEnd;
  /** Records so far and the hash of the last one. */
  readonly records: number;
  readonly head: string;
  /** The owner's own description (process id), while it lives. */
  readonly owner?: string;
}

export interface EventQuery {
  /** Events after this event id. Each run has an order of its own: with `children`, those of other runs are all there. */
  readonly after?: string;
  /** Goes on with new events until the run ends. */
  readonly follow?: boolean;
  /** The events of child runs too, each run's in its own order. */
  readonly children?: boolean;
  readonly signal?: AbortSignal;
}

/** Which finished runs may go; with both, those that either keeps stay. */
export interface PruneQuery {
  /** Only those that ended before this, epoch milliseconds. */
  readonly endedBefore?: number;
  /** So many of the newest finished ones stay. */
  readonly keep?: number;
  /** Only says which would go. */
  readonly dryRun?: boolean;
}
/** A run that is gone, or would be. */
export interface PrunedRun {
  readonly runId: string;
  readonly status: RunEnd["status"];
  readonly createdAt: number;
  readonly endedAt: number;
  /** Of the run and everything below it. */
  readonly journals: number;
  readonly records: number;
}

/** A new run that begins like another: the records before one of its own, and the children that they started. */
export interface RunCopy {
  readonly runId: string;
  /** The run it begins like, in whatever state that is; it is only read. */
  readonly of: string;
  /** The seq of the first record of it that does not come along: no step but a fork may be open there. */
  readonly before: number;
  /** Keys of the children that begin anew, of a fork that is open there. Those that did not complete do so anyway. */
  readonly again?: readonly string[];
  /** Events of the new run's first record, which stands at the time of the other's. */
  readonly started: readonly EventDraft[];
  /** Events of the record that ends what was copied. */
  readonly forked: readonly EventDraft[];
}

export interface ResumeRunOptions {
  /** What `run.resumed` says beside the incarnation. */
  readonly said?: JsonObject;
  /** The run's journal as `journal` gave it a moment ago: checked like one that is read, and not read again. Where the run went on since, it is not taken up (`run_continued_elsewhere`): what was made of the journal, such as what may still be spent, does not hold any more. */
  readonly read?: RunJournal;
}

/** Everything one can do with runs, from the process that owns them or from another. */
export interface RunHost {
  /** The folder on this disk that holds the journals, if any: tools neither read nor write it. */
  readonly folder?: string;
  start(run: NewRun): Promise<RunTask>;
  /**
   * Makes a new run of the beginning of another, that nobody owns yet: `resume` takes it up. All of it or nothing. What was
   * sent to the other run does not come along, beyond what its records say. Refused with `run_unknown`, `run_is_child`,
   * `run_exists`, `journal_damaged`, or `copy_point` where something is open.
   */
  copy(copy: RunCopy): Promise<void>;
  /** Takes up a run that has no live owner. Refused with `run_owned`, `run_finished`, `run_unknown` or `run_continued_elsewhere`. */
  resume(runId: string, program: RunProgram, options?: ResumeRunOptions): Promise<RunTask>;
  signal(runId: string, message: SignalMessage): Promise<SignalOutcome>;
  /** Asks the live owner, or takes the run over and finishes it and its children as cancelled, without running its code. */
  cancel(runId: string, reason: string, by: string): Promise<"requested" | "cancelled" | "finished" | "unknown">;
  /** Waits for the end, whoever brings it about. */
  result(runId: string, options?: { readonly signal?: AbortSignal }): Promise<RunEnd>;
  /** Open requests, oldest first: of one run and its children, or of all. */
  requests(runId?: string): Promise<readonly OpenRequest[]>;
  events(runId: string, query?: EventQuery): AsyncIterable<SluiceEvent>;
  get(runId: string): Promise<RunSummary | undefined>;
  /** Runs that are nobody's children, newest first: all, or at most so many. */
  list(options?: { readonly limit?: number }): Promise<readonly RunSummary[]>;
  /** Removes finished runs, with all that belongs to them, for good. Never one that is unfinished or that somebody owns. */
  prune(query: PruneQuery): Promise<readonly PrunedRun[]>;
  /** Calls the listener after anything in the store may have changed. Returns the unsubscriber. */
  onChange(listener: () => void): () => void;
  /** The records of one run, without its children's, from a seq on (0 when omitted), all or at most so many: for whoever reads on as a run works. Rejects with `run_unknown`. */
  records(runId: string, from?: number, limit?: number): Promise<readonly JournalRecord[]>;
  /** The raw journal, for audit and export. */
  journal(runId: string): Promise<readonly RunJournal[]>;
  /** Suspends what runs here and lets the store go, and with it what was held. Whoever waits for a run here is told. */
  close(): Promise<void>;
}

/** One run's records with what the run's row claims about them. */
export interface RunJournal {
  readonly runId: string;
  readonly parentId?: string;
  readonly input: Json;
  readonly records: readonly JournalRecord[];
  readonly claimed: { readonly records: number; readonly head: string };
  readonly end?: RunEnd;
}

/** `life` is what journals of version 1 call `lifecycle`; it is never written. */
export type RecordPhase = "open" | "done" | "lifecycle" | "life";

/** One line of the journal. `value` and `events` are kept as the JSON text that was hashed. */
export interface JournalRecord {
  /** Counts records, from 0. */
  readonly seq: number;
  /** Counts steps, from 0; -1 for lifecycle records, which are not steps. */
  readonly ordinal: number;
  readonly stepId: string;
  readonly phase: RecordPhase;
  readonly incarnation: string;
  /** JSON text of the step's value (done) or its intent (open); empty when there is none. */
  readonly value: string;
  /** JSON text of an array of events without ids, and without what an event shares with the one before it; see `readEvents`. */
  readonly events: string;
  /** SHA-256, hex, over the record and the hash before it. */
  readonly hash: string;
}
