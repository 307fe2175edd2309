import type { Clock } from "../../base/clock.ts";
import { isSluiceError, messageOf, SluiceError } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import { appendRecord, draftCommit, genesisPosition, type RunPosition, toRecordedValue } from "../record/append.ts";
import type {
  ChildRun,
  LiveChunk,
  NewRun,
  ProgramEnd,
  RunEnd,
  RunProgram,
  RunTask,
  SiblingEnd,
  SuspendReason,
} from "../seam.ts";
import { childRunId, LIFECYCLE_STEP, NO_ORDINAL } from "../step-id.ts";
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

/** What all runs at work in a host share. */
export interface HostServices {
  readonly store: JournalStore;
  readonly clock: Clock;
  readonly report: Report;
}

/** A child that is to work here. */
interface OpenedChild extends Pick<ResumeState, "past" | "input" | "forked"> {
  readonly at: RunPosition;
}

interface LiveListener {
  readonly tell: (chunk: LiveChunk) => void;
}

/** The record every journal begins with. */
export function startRecord(inputText: string, events: NewRun["events"]) {
  return { ordinal: NO_ORDINAL, stepId: LIFECYCLE_STEP.start, phase: "lifecycle" as const, value: inputText, events };
}

/**
 * A run of this process with everything below it: owned, stopped and released as one. Its sets are made when first needed:
 * most runs have nobody to tell, nothing to wait for and nothing to hold.
 */
export class RunTree implements ActiveTree {
  readonly rootId: string;
  readonly #host: HostServices;
  readonly #program: RunProgram;
  readonly #root = new Cancellation();
  /** Of the children at work. The root reaches them through their forks, too. */
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

  /** Runs the root's program to its end and writes the end down. */
  work(at: RunPosition, past: RecordedSteps, input: Json): Promise<SiblingEnd> {
    return this.#work(this.#root, at, past, input);
  }

  /** Ends the root through its own code, and notes who wants that. */
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

  /** Lets every wait for a signal look again. */
  signalled(): void {
    for (const listener of [...(this.#signalListeners ?? [])]) listener();
  }

  emit(chunk: LiveChunk): void {
    for (const listener of this.#liveListeners ?? []) {
      try {
        listener.tell(chunk);
      } catch (thrown) {
        // Whoever only watches must not be able to break the run.
        this.#liveListeners?.delete(listener);
        this.#host.report(thrown);
      }
    }
  }

  heard(): boolean {
    return this.#liveListeners !== undefined && this.#liveListeners.size > 0;
  }

  onLive(tell: LiveListener["tell"]): () => void {
    const listener = { tell };
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

  /** Work that was given up and goes on; undefined when there is none. */
  held(): Promise<void> | undefined {
    const holds = this.#holds;
    if (holds === undefined || holds.size === 0) return undefined;
    const drain = async (): Promise<void> => {
      // Work that ends may have handed over to other work.
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
    const end = this.#work(control, opened.at, opened.past, opened.input);
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

  /** Runs a program to its end. */
  async #work(control: Cancellation, at: RunPosition, past: RecordedSteps, input: Json): Promise<SiblingEnd> {
    if (this.#stopped !== undefined) control.stop(this.#stopped);
    const { store, clock } = this.#host;
    const runner = new ProgramRunner({ store, clock, at, past, control, tree: this });
    let ended: ProgramEnd;
    try {
      ended = runner.ended(await this.#program(runner, input));
    } catch (thrown) {
      return await this.#close(at, await runner.failed(thrown));
    }
    return await this.#end(at, ended);
  }

  /** Writes the end of a run down. */
  async #end(at: RunPosition, { status, value, events }: ProgramEnd): Promise<SiblingEnd> {
    const { store, clock } = this.#host;
    const { text, value: end } = toRecordedValue<RunEnd>({ status, value }, `the end of ${at.runId}`);
    await this.#noteCancel(at);
    const record = {
      ordinal: NO_ORDINAL,
      stepId: LIFECYCLE_STEP.end,
      phase: "lifecycle" as const,
      value: text,
      events,
    };
    await stopOnFailure(this, () => appendRecord(store, at, { ...record, end }, clock));
    return { ...end, records: at.seq, head: at.head };
  }

  async #open(parent: ActiveRun, childId: string, child: ChildRun, fresh: boolean): Promise<OpenedChild | ChildEnd> {
    const { store, clock } = this.#host;
    const { epoch, incarnation } = parent.at;
    const row = fresh ? undefined : await childRow(parent, childId);
    if (row === undefined) {
      const input = toRecordedValue(child.input, `the input of ${childId}`);
      const start = genesisPosition(childId, incarnation);
      const commit = draftCommit(start, startRecord(input.text, child.events), clock);
      const ids = { runId: childId, rootId: this.rootId, parentId: parent.at.runId };
      const seed = { ...ids, createdAt: clock.now(), input: input.value };
      await stopOnFailure(this, () => store.create(seed, { ...commit, epoch }));
      const at: RunPosition = { ...start, epoch, seq: 1, head: commit.record.hash };
      return { at, past: NO_RECORDED_STEPS, input: input.value, forked: false };
    }
    const ended = await loadChildEnd(store, row);
    if (ended !== undefined) return { ended };
    const { seq, head, ...taken } = await loadForResume(store, row);
    return { at: { runId: childId, epoch, incarnation, seq, head }, ...taken };
  }

  async #noteCancel(at: RunPosition): Promise<void> {
    if (at.runId === this.rootId && this.#cancelRequest !== undefined)
      await recordCancel(this.#host, at, this.#cancelRequest);
  }

  /** Ends a run and everything below it as cancelled, without running their code. */
  async #close(at: RunPosition, reason: string): Promise<SiblingEnd> {
    const { store, clock } = this.#host;
    await this.#noteCancel(at);
    return await cancelWithChildren({ store, clock, rootId: this.rootId }, at, reason);
  }
}

/** What every step of a tree rejects with once one of its runs cannot go on. */
function stopReason(rootId: string, thrown: unknown): SluiceError {
  if (isSluiceError(thrown) && thrown.class === "Host") return thrown;
  const message = `run ${rootId} cannot go on here, and can be resumed: ${messageOf(thrown)}`;
  return new SluiceError("Host", "run_faulted", message, { cause: thrown });
}

/** A host as its tasks see it. */
export interface RunTaskHost extends HostServices {
  readonly changes: Changes;
  readonly incarnation: () => string;
  /** The run does not belong to this host any more. */
  readonly onReleased: (runId: string) => void;
}
type TaskEnd = Awaited<RunTask["settled"]>;
interface Fault {
  readonly fault: unknown;
}

/**
 * How long the end of a task waits for code that was told to stop; whatever still works then keeps the lock alone. Short,
 * since a cancel has to return within 100 ms, and the run may have given a tool half of that already.
 */
const MOMENT_MS = 40;

/** A root run at work in this host: works on it until it ends, is suspended or cannot go on here, and then gives it up. */
export class HostTask implements RunTask, ChangeListener, Coalescer {
  readonly settled: Promise<TaskEnd>;
  readonly #host: RunTaskHost;
  readonly #tree: RunTree;
  readonly #at: RunPosition;
  readonly #looking = new CoalescedWork(this);
  #suspension: { readonly reason: SuspendReason; readonly error: SluiceError } | undefined;
  #over = false;

  constructor(host: RunTaskHost, tree: RunTree, at: RunPosition, past: RecordedSteps, input: Json) {
    this.#host = host;
    this.#tree = tree;
    this.#at = at;
    this.settled = this.#work(past, input);
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

  /** The store changed: signals may have come, others may have asked for the run's end or taken it. */
  storeChanged(): void {
    this.#tree.signalled();
    this.#looking.ask();
  }

  #work(past: RecordedSteps, input: Json): Promise<TaskEnd> {
    const failed = async (thrown: unknown): Promise<TaskEnd> => this.#finish(await this.#stopped(thrown));
    try {
      this.#host.changes.add(this);
      // What was asked for before this was listening.
      this.#looking.ask();
    } catch (thrown) {
      return failed(thrown);
    }
    const work = this.#tree.work(this.#at, past, input);
    return work.then(({ status, value }) => this.#finish({ end: { status, value } }), failed);
  }

  async #finish(outcome: TaskEnd | Fault): Promise<TaskEnd> {
    // Whoever never looks at a run that cannot go on must not bring the process down; whoever does still sees the rejection.
    this.settled.catch(ignore);
    this.#host.changes.drop(this);
    this.#over = true;
    const closed = await this.#letGo(outcome);
    if ("fault" in outcome) throw outcome.fault;
    return closed === undefined ? outcome : { end: closed };
  }

  /** What a run that stopped here comes to: suspended, when it was told to be and that could be recorded. */
  async #stopped(thrown: unknown): Promise<TaskEnd | Fault> {
    if (this.#suspension === undefined || thrown !== this.#suspension.error) return { fault: thrown };
    const { store, clock } = this.#host;
    const { reason } = this.#suspension;
    const record = { ordinal: NO_ORDINAL, stepId: LIFECYCLE_STEP.suspend, phase: "lifecycle" as const, value: "" };
    try {
      await appendRecord(store, this.#at, { ...record, events: [{ type: "run.suspended", data: { reason } }] }, clock);
      return { suspended: reason };
    } catch (fault) {
      return { fault };
    }
  }

  /** What others did to the run: asked for its end, or took it. */
  async look(): Promise<void> {
    const { store } = this.#host;
    try {
      const row = this.#over ? undefined : await store.run(this.runId);
      if (this.#over) return;
      if (row?.cancel !== undefined) this.#tree.cancel(row.cancel);
      if (row?.owner?.id !== store.ownerId) {
        const message = `run ${this.runId} was taken over by another process`;
        this.#tree.stop(new SluiceError("Host", "ownership_lost", message));
      }
    } catch (thrown) {
      // A store that cannot be read any more cannot hold this run's next record either.
      this.#tree.stop(thrown);
    }
  }

  async #letGo(outcome: TaskEnd | Fault): Promise<RunEnd | undefined> {
    const held = this.#tree.held();
    if (held === undefined) return await this.#release(outcome);
    let disarm: (() => void) | undefined;
    const moment = new Promise<undefined>((resolve) => {
      disarm = this.#host.clock.after(MOMENT_MS, () => resolve(undefined));
    });
    const released = held.then(() => {
      disarm?.();
      return this.#release(outcome);
    });
    return await Promise.race([released, moment]);
  }

  /** Gives the run up. Whoever asked for its end meanwhile was told that its owner would see to it. */
  async #release(outcome: TaskEnd | Fault): Promise<RunEnd | undefined> {
    const { store, clock, report, incarnation, onReleased } = this.#host;
    const rootId = this.runId;
    try {
      await store.release(rootId);
      if ("end" in outcome || (await store.run(rootId))?.cancel === undefined) return undefined;
      return await cancelOrphan({ store, clock, rootId, incarnation });
    } catch (thrown) {
      // The run is what its journal says; the lock goes with the process, and is gone when the store was closed. Of a disk
      // that fails the run's own fault tells.
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
