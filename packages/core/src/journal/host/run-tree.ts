import type { Clock } from "../../base/clock.ts";
import { isSluiceError, messageOf, SluiceError } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import {
  appendRecord,
  draftCommit,
  genesisPosition,
  lifecycleRecord,
  type RunPosition,
  toRecordedValue,
} from "../record.ts";
import type {
  ChildRun,
  LiveChunk,
  ProgramEnd,
  RunEnd,
  RunProgram,
  RunTask,
  SiblingEnd,
  SuspendReason,
} from "../seam.ts";
import { childRunId, LIFECYCLE_STEP } from "../step-id.ts";
import type { JournalStore } from "../store/journal-store.ts";
import {
  type ActiveRun,
  type ActiveTree,
  Cancellation,
  type ChildEnd,
  type ChildTask,
  stopOnFailure,
} from "./active-run.ts";
import { type CancelRequest, cancelLeaf, cancelOrphan, cancelWithChildren, recordCancel } from "./cancel-orphans.ts";
import { childRow } from "./fork.ts";
import {
  loadChildEnd,
  loadForResume,
  NO_RECORDED_STEPS,
  type RecordedSteps,
  type ResumeState,
} from "./recorded-steps.ts";
import { SUSPENDED } from "./step-call.ts";
import { ProgramRunner } from "./step-runner.ts";
import { type ChangeListener, type Changes, CoalescedWork, type Coalescer, type Report } from "./store-changes.ts";

/** Shared by all runs of a host. */
export interface HostServices {
  readonly store: JournalStore;
  readonly clock: Clock;
  readonly report: Report;
}

/** A child that is about to run here. */
interface OpenedChild extends Pick<ResumeState, "recorded" | "input" | "forked"> {
  readonly at: RunPosition;
}

interface LiveListener {
  readonly onChunk: (chunk: LiveChunk) => void;
}

/**
 * A root run of this process with its descendants, which are owned, stopped and released together. Its sets are created on first
 * use, since most runs need none of them.
 */
export class RunTree implements ActiveTree {
  readonly rootId: string;
  readonly #host: HostServices;
  readonly #program: RunProgram;
  readonly #root = new Cancellation();
  /** The running children's. */
  #children: Set<Cancellation> | undefined;
  #signalListeners: Set<() => void> | undefined;
  #liveListeners: Set<LiveListener> | undefined;
  #holds: Set<Promise<unknown>> | undefined;
  #stopped: SluiceError | undefined;
  #cancelRequest: CancelRequest | undefined;

  constructor(host: HostServices, rootId: string, program: RunProgram) {
    this.#host = host;
    this.rootId = rootId;
    this.#program = program;
  }

  /** Runs the root's program and records its end. */
  work(at: RunPosition, recorded: RecordedSteps, input: Json): Promise<SiblingEnd> {
    return this.#work(this.#root, at, recorded, input);
  }

  /** Cancels the root, whose own code then ends it, and keeps the request for its journal. */
  cancel(request: CancelRequest): void {
    this.#cancelRequest ??= request;
    const { reason, by } = request;
    this.#root.cancel(new SluiceError("Cancellation", "run_cancelled", reason, { detail: { by } }));
  }

  stop(thrown: unknown): void {
    if (this.#stopped !== undefined) return;
    const reason = stopReason(this.rootId, thrown);
    this.#stopped = reason;
    for (const control of [this.#root, ...(this.#children ?? [])]) control.stop(reason);
  }

  onSignal(listener: () => void): () => void {
    this.#signalListeners ??= new Set();
    this.#signalListeners.add(listener);
    return () => this.#signalListeners?.delete(listener);
  }

  /** Lets every wait check again for its signal. */
  signalled(): void {
    for (const listener of [...(this.#signalListeners ?? [])]) listener();
  }

  emit(chunk: LiveChunk): void {
    for (const listener of this.#liveListeners ?? []) {
      try {
        listener.onChunk(chunk);
      } catch (thrown) {
        // A listener must not break the run.
        this.#liveListeners?.delete(listener);
        this.#host.report(thrown);
      }
    }
  }

  heard(): boolean {
    return this.#liveListeners !== undefined && this.#liveListeners.size > 0;
  }

  onLive(onChunk: LiveListener["onChunk"]): () => void {
    const listener = { onChunk };
    this.#liveListeners ??= new Set();
    this.#liveListeners.add(listener);
    return () => this.#liveListeners?.delete(listener);
  }

  hold(work: Promise<unknown>): void {
    this.#holds ??= new Set();
    this.#holds.add(work);
    const drop = (): void => {
      this.#holds?.delete(work);
    };
    work.then(drop, drop);
  }

  /** Settles when all abandoned work has ended; undefined if there is none. */
  held(): Promise<void> | undefined {
    const holds = this.#holds;
    if (holds === undefined || holds.size === 0) return undefined;
    const drain = async (): Promise<void> => {
      // Work may add more work before it ends.
      while (holds.size > 0) await Promise.allSettled([...holds]);
    };
    return drain();
  }

  async openChild(parent: ActiveRun, stepId: string, child: ChildRun, fresh: boolean): Promise<ChildTask | ChildEnd> {
    const opened = await this.#open(parent, childRunId(parent.at.runId, stepId, child.key), child, fresh);
    if ("ended" in opened) return opened;
    const control = new Cancellation();
    this.#children ??= new Set();
    this.#children.add(control);
    const end = this.#work(control, opened.at, opened.recorded, opened.input);
    const drop = (): void => void this.#children?.delete(control);
    end.then(drop, drop);
    return { end, cancel: (reason) => control.cancel(reason) };
  }

  async closeChild(parent: ActiveRun, stepId: string, child: ChildRun, reason: string): Promise<SiblingEnd> {
    const opened = await this.#open(parent, childRunId(parent.at.runId, stepId, child.key), child, false);
    if ("ended" in opened) return opened.ended;
    const { store, clock } = this.#host;
    const closing = { store, clock, rootId: this.rootId };
    return await (opened.forked ? cancelWithChildren : cancelLeaf)(closing, opened.at, reason);
  }

  async #work(control: Cancellation, at: RunPosition, recorded: RecordedSteps, input: Json): Promise<SiblingEnd> {
    if (this.#stopped !== undefined) control.stop(this.#stopped);
    const { store, clock } = this.#host;
    const runner = new ProgramRunner({ store, clock, at, recorded, control, tree: this });
    let ended: ProgramEnd;
    try {
      ended = runner.ended(await this.#program(runner, input));
    } catch (thrown) {
      return await this.#close(at, await runner.failed(thrown));
    }
    return await this.#end(at, ended);
  }

  async #end(at: RunPosition, { status, value, events }: ProgramEnd): Promise<SiblingEnd> {
    const { store, clock } = this.#host;
    const { text, value: end } = toRecordedValue<RunEnd>({ status, value }, `the end of ${at.runId}`);
    await this.#recordCancel(at);
    const record = { ...lifecycleRecord(LIFECYCLE_STEP.end, events, text), end };
    await stopOnFailure(this, () => appendRecord(store, at, record, clock));
    return { ...end, records: at.seq, head: at.head };
  }

  async #open(parent: ActiveRun, childId: string, child: ChildRun, fresh: boolean): Promise<OpenedChild | ChildEnd> {
    const { store, clock } = this.#host;
    const { epoch, incarnation } = parent.at;
    const row = fresh ? undefined : await childRow(parent, childId);
    if (row === undefined) {
      const input = toRecordedValue(child.input, `the input of ${childId}`);
      const start = genesisPosition(childId, incarnation);
      const commit = draftCommit(start, lifecycleRecord(LIFECYCLE_STEP.start, child.events, input.text), clock);
      const ids = { runId: childId, rootId: this.rootId, parentId: parent.at.runId };
      const seed = { ...ids, createdAt: clock.now(), input: input.value };
      await stopOnFailure(this, () => store.create(seed, { ...commit, epoch }));
      const at: RunPosition = { ...start, epoch, seq: 1, head: commit.record.hash };
      return { at, recorded: NO_RECORDED_STEPS, input: input.value, forked: false };
    }
    const ended = await loadChildEnd(store, row);
    if (ended !== undefined) return { ended };
    const { seq, head, ...resumed } = await loadForResume(store, row);
    return { at: { runId: childId, epoch, incarnation, seq, head }, ...resumed };
  }

  async #recordCancel(at: RunPosition): Promise<void> {
    if (at.runId === this.rootId && this.#cancelRequest !== undefined)
      await recordCancel(this.#host, at, this.#cancelRequest);
  }

  /** Ends a run and its descendants as cancelled, without running their code. */
  async #close(at: RunPosition, reason: string): Promise<SiblingEnd> {
    const { store, clock } = this.#host;
    await this.#recordCancel(at);
    return await cancelWithChildren({ store, clock, rootId: this.rootId }, at, reason);
  }
}

/** What every step of a tree rejects with once one of its runs has failed. */
function stopReason(rootId: string, thrown: unknown): SluiceError {
  if (isSluiceError(thrown) && thrown.class === "Host") return thrown;
  const message = `run ${rootId} stopped here and can be resumed: ${messageOf(thrown)}`;
  return new SluiceError("Host", "run_faulted", message, { cause: thrown });
}

/** A host as its tasks see it. */
export interface RunTaskHost extends HostServices {
  readonly changes: Changes;
  readonly incarnation: () => string;
  /** Called when this host no longer owns the run. */
  readonly onReleased: (runId: string) => void;
}
type TaskEnd = Awaited<RunTask["settled"]>;
interface Fault {
  readonly fault: unknown;
}

/**
 * How long a task's end waits for abandoned code; after that, only the run's lock waits for it. Short, since a cancel has to
 * return within 100 ms, half of which a tool may have used.
 */
const RELEASE_GRACE_MS = 40;

/** A root run of this host: runs it until it ends, is suspended or fails here, and then releases it. */
export class HostTask implements RunTask, ChangeListener, Coalescer {
  readonly settled: Promise<TaskEnd>;
  readonly #host: RunTaskHost;
  readonly #tree: RunTree;
  readonly #at: RunPosition;
  readonly #check = new CoalescedWork(this);
  #suspension: { readonly reason: SuspendReason; readonly error: SluiceError } | undefined;
  #ended = false;

  constructor(host: RunTaskHost, tree: RunTree, at: RunPosition, recorded: RecordedSteps, input: Json) {
    this.#host = host;
    this.#tree = tree;
    this.#at = at;
    this.settled = this.#work(recorded, input);
  }

  get runId(): string {
    return this.#tree.rootId;
  }

  get waits(): boolean {
    return false;
  }

  async suspend(reason: SuspendReason): Promise<void> {
    if (this.#suspension === undefined) {
      const message = `run ${this.runId} was suspended here (${reason}); it can be resumed`;
      this.#suspension = { reason, error: new SluiceError("Host", SUSPENDED, message) };
      this.#tree.stop(this.#suspension.error);
    }
    await this.settled;
  }

  cancel(request: CancelRequest): void {
    this.#tree.cancel(request);
  }

  onLive(listener: (chunk: LiveChunk) => void): () => void {
    return this.#tree.onLive(listener);
  }

  /** The store may have new signals, a cancel request or another owner. */
  storeChanged(): void {
    this.#tree.signalled();
    this.#check.request();
  }

  #work(recorded: RecordedSteps, input: Json): Promise<TaskEnd> {
    const failed = async (thrown: unknown): Promise<TaskEnd> => this.#finish(await this.#suspended(thrown));
    try {
      this.#host.changes.add(this);
      // Finds requests from before it listened.
      this.#check.request();
    } catch (thrown) {
      return failed(thrown);
    }
    const work = this.#tree.work(this.#at, recorded, input);
    return work.then(({ status, value }) => this.#finish({ end: { status, value } }), failed);
  }

  async #finish(outcome: TaskEnd | Fault): Promise<TaskEnd> {
    // An unawaited task must not crash the process; its callers still see the rejection.
    this.settled.catch(ignore);
    this.#host.changes.drop(this);
    this.#ended = true;
    const closed = await this.#releaseAfterWork(outcome);
    if ("fault" in outcome) throw outcome.fault;
    return closed === undefined ? outcome : { end: closed };
  }

  /** The outcome of a stopped run: suspended, if that was requested and could be recorded. */
  async #suspended(thrown: unknown): Promise<TaskEnd | Fault> {
    if (this.#suspension === undefined || thrown !== this.#suspension.error) return { fault: thrown };
    const { store, clock } = this.#host;
    const { reason } = this.#suspension;
    const events = [{ type: "run.suspended", data: { reason } }] as const;
    try {
      await appendRecord(store, this.#at, lifecycleRecord(LIFECYCLE_STEP.suspend, events), clock);
      return { suspended: reason };
    } catch (fault) {
      return { fault };
    }
  }

  /** Checks whether another process requested a cancel or took ownership. */
  async run(): Promise<void> {
    const { store } = this.#host;
    try {
      const row = this.#ended ? undefined : await store.run(this.runId);
      if (this.#ended) return;
      if (row?.cancel !== undefined) this.#tree.cancel(row.cancel);
      if (row?.owner?.id !== store.ownerId) {
        const message = `run ${this.runId} was taken over by another process`;
        this.#tree.stop(new SluiceError("Host", "ownership_lost", message));
      }
    } catch (thrown) {
      // A store that cannot be read cannot take this run's next record either.
      this.#tree.stop(thrown);
    }
  }

  async #releaseAfterWork(outcome: TaskEnd | Fault): Promise<RunEnd | undefined> {
    const held = this.#tree.held();
    if (held === undefined) return await this.#release(outcome);
    let disarm: (() => void) | undefined;
    const timeout = new Promise<undefined>((resolve) => {
      disarm = this.#host.clock.after(RELEASE_GRACE_MS, () => resolve(undefined));
    });
    const released = held.then(() => {
      disarm?.();
      return this.#release(outcome);
    });
    return await Promise.race([released, timeout]);
  }

  /** Releases the run, and carries out a cancel that was requested meanwhile. */
  async #release(outcome: TaskEnd | Fault): Promise<RunEnd | undefined> {
    const { store, clock, report, incarnation, onReleased } = this.#host;
    const rootId = this.runId;
    try {
      await store.release(rootId);
      if ("end" in outcome || (await store.run(rootId))?.cancel === undefined) return undefined;
      return await cancelOrphan({ store, clock, rootId, incarnation });
    } catch (thrown) {
      // The journal is intact. The lock ends with the process or with a closed store, and a disk fault is in the outcome.
      if (!("fault" in outcome) && !isSluiceError(thrown, "store_closed")) report(thrown);
      return undefined;
    } finally {
      onReleased(rootId);
    }
  }
}

function ignore(): void {
  return;
}
