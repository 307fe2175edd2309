import type { Clock } from "../../base/clock.ts";
import { isSluiceError, messageOf, SluiceError } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import { appendRecord, lifecycleRecord, type RunPosition, toRecordedValue } from "../record.ts";
import type {
  Asleep,
  ExecutionFault,
  LiveChunk,
  ProgramEnd,
  RunEnd,
  RunProgram,
  RunTask,
  SiblingEnd,
  SuspendReason,
} from "../seam.ts";
import { LIFECYCLE_STEP } from "../step-id.ts";
import type { JournalStore } from "../store/journal-store.ts";
import { type ActiveTree, Cancellation, type Rest, SUSPENDED, stopOnFailure } from "./active-run.ts";
import { type CancelRequest, cancelOrphan, cancelWithChildren, recordCancel } from "./cancel-orphans.ts";
import { INTERRUPTION_SIGNAL, Interruptions } from "./interruptions.ts";
import { type RecordedSteps, Recovery, type ResumeState } from "./recorded-steps.ts";
import { ProgramRunner } from "./step-runner.ts";
import { type ChangeListener, type Changes, Coalesced, type Report } from "./store-changes.ts";

/** A host as its runs see it. */
export interface HostServices {
  readonly store: JournalStore;
  readonly clock: Clock;
  readonly report: Report;
  readonly changes: Changes;
  readonly incarnation: () => string;
  /** Called when this host no longer owns the run. */
  readonly onReleased: (runId: string) => void;
  /** Resolves when the signals that this host is sending are stored, or were refused. */
  readonly sent: () => Promise<void>;
}

type TaskEnd = Awaited<RunTask["settled"]>;
interface Fault {
  readonly fault: unknown;
}

interface Suspension {
  readonly reason: SuspendReason;
  /** See `Commit`. */
  readonly wakeAt: number | null | undefined;
  readonly faults: readonly ExecutionFault[];
  readonly error: SluiceError;
}

interface LiveListener {
  readonly onChunk: (chunk: LiveChunk) => void;
}

/**
 * How long a task's end waits for abandoned code; after that, only the run's lock waits for it. Short, since a cancel has to
 * return within 100 ms, half of which a tool may have used.
 */
const RELEASE_GRACE_MS = 40;

/**
 * A root run of this host with its descendants, which are owned, stopped and released together: runs it until it ends, is suspended
 * or fails here, and then releases it. Most of its sets are created on first use, since most runs need none of them.
 */
export class RunTree implements RunTask, ActiveTree, ChangeListener {
  readonly runId: string;
  readonly settled: Promise<TaskEnd>;
  readonly #host: HostServices;
  readonly #program: RunProgram;
  readonly #at: RunPosition;
  readonly #root = new Cancellation();
  readonly interruptions: Interruptions;
  readonly recovery: Recovery | undefined;
  /** Undefined before the first reading. */
  #interruptionsSeen: number | undefined;
  /** Of the children that are running. */
  #children: Set<Cancellation> | undefined;
  #signalListeners: Set<() => void> | undefined;
  #liveListeners: Set<LiveListener> | undefined;
  #holds: Set<Promise<unknown>> | undefined;
  /** The programs that run, and those of them that do not work. */
  #programs = 0;
  #rests: Set<Rest> | undefined;
  #asleepListeners: Set<(asleep: Asleep) => void> | undefined;
  #stopped: SluiceError | undefined;
  #cancelRequest: CancelRequest | undefined;
  #suspension: Suspension | undefined;
  readonly #check = new Coalesced(() => this.#readRequests());
  /** Records bring no signal, cancel or new owner: reading the run's row again after each of its own would find nothing. */
  readonly skipsRecords = true;
  #ended = false;

  constructor(
    host: HostServices,
    program: RunProgram,
    at: RunPosition,
    {
      recorded,
      input,
      interruptions = 0,
    }: Pick<ResumeState, "recorded" | "input"> & Partial<Pick<ResumeState, "interruptions">>,
  ) {
    this.runId = at.runId;
    this.#host = host;
    this.#program = program;
    this.#at = at;
    // Its result says how it was suspended.
    this.interruptions = new Interruptions(interruptions, () => void this.suspend("interrupted").catch(ignore));
    this.recovery = recorded.left ? new Recovery() : undefined;
    // Not an async function, which would take more memory while the run waits.
    this.settled = this.work(this.#root, at, recorded, input).then(
      ({ status, value }) => this.#close({ end: { status, value } }),
      async (thrown: unknown) => await this.#close(await this.#suspended(thrown)),
    );
  }

  async suspend(because: SuspendReason, { due = false }: { readonly due?: boolean } = {}): Promise<void> {
    if (this.#suspension === undefined) {
      const asleep = this.#asleep();
      const faults = this.#faults();
      const reason = suspendReason(because, asleep, faults);
      const wakeAt = reason === "interrupted" ? (due ? undefined : null) : (this.wakeAt() ?? null);
      const message = `run ${this.runId} was suspended here (${reason}); it can be resumed`;
      this.#suspension = { reason, wakeAt, faults, error: new SluiceError("Host", SUSPENDED, message) };
      this.stop(this.#suspension.error);
    }
    await this.settled;
  }

  onAsleep(listener: (asleep: Asleep) => void): () => void {
    this.#asleepListeners ??= new Set();
    this.#asleepListeners.add(listener);
    this.#checkAsleep();
    return () => this.#asleepListeners?.delete(listener);
  }

  rest(wait: Rest): void {
    this.#rests ??= new Set();
    this.#rests.add(wait);
    this.#checkRests();
  }

  wake(wait: Rest): void {
    this.#rests?.delete(wait);
  }

  wakeAt(): number | undefined {
    const times = [...(this.#rests ?? [])].flatMap(({ until }) => until ?? []);
    return times.length === 0 ? undefined : Math.min(...times);
  }

  #faults(): readonly ExecutionFault[] {
    return [...(this.#rests ?? [])].flatMap(({ fault }) => fault ?? []);
  }

  /** Whether every program of the tree rests, and until when. */
  #asleep(): Asleep | undefined {
    const rests = this.#rests;
    if (rests === undefined || rests.size < this.#programs) return undefined;
    const wakeAt = this.wakeAt();
    const waiting = [...rests].filter(({ kind }) => kind === "signal").length;
    return wakeAt === undefined && waiting === 0 ? undefined : { wakeAt, waiting };
  }

  /** Whether every program of the tree rests, and none continues by itself: in time, or with an answer. */
  #isHeldByFaults(): boolean {
    const rests = [...(this.#rests ?? [])];
    if (rests.length < this.#programs || !rests.some(({ kind }) => kind === "fault")) return false;
    return rests.every(({ kind }) => kind === "fault" || kind === "children");
  }

  /** Most runs have neither listeners nor faults. */
  #checkRests(): void {
    if (this.#asleepListeners !== undefined) this.#checkAsleep();
    if (this.#rests !== undefined && this.#isHeldByFaults()) this.#checkFaults();
  }

  /** In the next turn, when the record that opens the sleep is on its way. */
  #checkAsleep(): void {
    setImmediate(() => {
      const asleep = this.#ended ? undefined : this.#asleep();
      if (asleep === undefined) return;
      for (const listener of [...(this.#asleepListeners ?? [])]) listener(asleep);
    });
  }

  /** In the next turn, since a child that has just ended is followed by its parent's work. */
  #checkFaults(): void {
    setImmediate(() => {
      const [fault] = this.#ended || !this.#isHeldByFaults() ? [] : this.#faults();
      // The task's end says whether the suspension could be recorded.
      if (fault !== undefined) this.suspend(fault.reason).catch(ignore);
    });
  }

  /** Cancels the root, whose own code then ends it, and keeps the request for its journal. */
  cancel(request: CancelRequest): void {
    this.#cancelRequest ??= request;
    const { reason, by } = request;
    this.#root.cancel(new SluiceError("Cancellation", "run_cancelled", reason, { detail: { by } }));
  }

  stop(thrown: unknown): void {
    if (this.#stopped !== undefined) return;
    const reason = stopReason(this.runId, thrown);
    this.#stopped = reason;
    if (!this.#ended) this.#root.stop(reason);
    for (const control of this.#children ?? []) control.stop(reason);
    this.recovery?.release();
  }

  onSignal(listener: () => void): () => void {
    this.#signalListeners ??= new Set();
    this.#signalListeners.add(listener);
    return () => this.#signalListeners?.delete(listener);
  }

  async sent(): Promise<void> {
    await this.#host.sent();
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
    const drop = (): void => void this.#holds?.delete(work);
    work.then(drop, drop);
  }

  storeChanged(): void {
    for (const listener of [...(this.#signalListeners ?? [])]) listener();
    this.#check.request();
  }

  async work(control: Cancellation, at: RunPosition, recorded: RecordedSteps, input: Json): Promise<SiblingEnd> {
    const { store, clock } = this.#host;
    if (this.#stopped !== undefined) control.stop(this.#stopped);
    if (control === this.#root) {
      this.#host.changes.watch(this);
      // Finds requests from before it listened.
      this.#check.request();
    } else {
      this.#children ??= new Set();
      this.#children.add(control);
    }
    this.#programs += 1;
    try {
      const runner = new ProgramRunner({ store, clock, at, recorded, control, tree: this });
      this.interruptions.join(runner);
      let ended: ProgramEnd;
      try {
        ended = runner.ended(await this.#program(runner, input));
        // Its end is recorded, too.
        if (this.recovery?.isOver === false) await runner.recovered();
      } catch (thrown) {
        const reason = await runner.failed(thrown);
        await this.#recordCancel(at);
        return await cancelWithChildren({ store, clock, rootId: this.runId }, at, reason);
      } finally {
        this.interruptions.leave(runner);
      }
      return await this.#end(at, ended);
    } finally {
      this.#programs -= 1;
      this.#checkRests();
      this.#children?.delete(control);
    }
  }

  async #end(at: RunPosition, { status, value, events }: ProgramEnd): Promise<SiblingEnd> {
    const { store, clock } = this.#host;
    const { text, value: end } = toRecordedValue<RunEnd>({ status, value }, `the end of ${at.runId}`);
    await this.#recordCancel(at);
    const record = { ...lifecycleRecord(LIFECYCLE_STEP.end, events, text), end };
    await stopOnFailure(this, () => appendRecord(store, at, record, clock));
    return { ...end, records: at.seq, head: at.head };
  }

  async #recordCancel(at: RunPosition): Promise<void> {
    if (at.runId === this.runId && this.#cancelRequest !== undefined)
      await recordCancel(this.#host, at, this.#cancelRequest);
  }

  /** The end of the task. */
  async #close(outcome: TaskEnd | Fault): Promise<TaskEnd> {
    // An unawaited task must not crash the process; its callers still see the rejection.
    this.settled.catch(ignore);
    this.#host.changes.unwatch(this);
    this.#ended = true;
    const closed = await this.#releaseAfterWork(outcome);
    if ("fault" in outcome) throw outcome.fault;
    return closed === undefined ? outcome : { end: closed };
  }

  /** Checks whether another process requested a cancel or took ownership. */
  async #readRequests(): Promise<void> {
    const { store } = this.#host;
    try {
      const row = this.#ended ? undefined : await store.run(this.runId);
      if (this.#ended) return;
      if (row?.cancel !== undefined) this.cancel(row.cancel);
      if (row?.owner?.id !== store.ownerId) {
        const message = `run ${this.runId} was taken over by another process`;
        this.stop(new SluiceError("Host", "ownership_lost", message));
      }
      const interruptions = await store.signals(this.runId, INTERRUPTION_SIGNAL);
      if (this.#ended || interruptions.length === this.#interruptionsSeen) return;
      this.#interruptionsSeen = interruptions.length;
      this.interruptions.receive(interruptions);
    } catch (thrown) {
      // A store that cannot be read cannot take this run's next record either.
      this.stop(thrown);
    }
  }

  /** The outcome of a stopped run: suspended, if that was requested and could be recorded. */
  async #suspended(thrown: unknown): Promise<TaskEnd | Fault> {
    if (this.#suspension === undefined || thrown !== this.#suspension.error) return { fault: thrown };
    const { store, clock } = this.#host;
    const { reason, wakeAt, faults } = this.#suspension;
    const wake = wakeAt == null ? {} : { wakeAt };
    const because = faults.length === 0 ? {} : { faults };
    const events = [{ type: "run.suspended", data: { reason, ...wake, ...firstOf(faults), ...because } }] as const;
    try {
      const record = lifecycleRecord(LIFECYCLE_STEP.suspend, events, String(this.interruptions.handled));
      await appendRecord(store, this.#at, { ...record, wakeAt }, clock);
      return { suspended: reason, ...wake, ...because };
    } catch (fault) {
      return { fault };
    }
  }

  async #releaseAfterWork(outcome: TaskEnd | Fault): Promise<RunEnd | undefined> {
    const holds = this.#holds;
    if (holds === undefined || holds.size === 0) return await this.#release(outcome);
    let disarm: (() => void) | undefined;
    const timeout = new Promise<undefined>((resolve) => {
      disarm = this.#host.clock.after(RELEASE_GRACE_MS, () => resolve(undefined));
    });
    const released = async (): Promise<RunEnd | undefined> => {
      // Work may add more work before it ends.
      while (holds.size > 0) await Promise.allSettled([...holds]);
      disarm?.();
      return await this.#release(outcome);
    };
    return await Promise.race([released(), timeout]);
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

/** A run that only rests was suspended because of that, whatever stopped it. */
function suspendReason(
  because: SuspendReason,
  asleep: Asleep | undefined,
  [fault]: readonly ExecutionFault[],
): SuspendReason {
  const reason = because === "interrupted" && asleep !== undefined && asleep.waiting === 0 ? "sleeping" : because;
  return reason === "sleeping" && fault !== undefined ? fault.reason : reason;
}

/** What a reader of one fault needs, beside the list of all; `retryAt` is the earliest. */
function firstOf(faults: readonly ExecutionFault[]): Partial<Pick<ExecutionFault, "code" | "message" | "retryAt">> {
  const [first] = faults;
  if (first === undefined) return {};
  const times = faults.flatMap(({ retryAt }) => retryAt ?? []);
  const { code, message } = first;
  return { code, message, ...(times.length === 0 ? {} : { retryAt: Math.min(...times) }) };
}

/** What every step of a tree rejects with once one of its runs has failed. */
function stopReason(rootId: string, thrown: unknown): SluiceError {
  if (isSluiceError(thrown) && thrown.class === "Host") return thrown;
  const message = `run ${rootId} stopped here and can be resumed: ${messageOf(thrown)}`;
  return new SluiceError("Host", "run_faulted", message, { cause: thrown });
}

function ignore(): void {
  return;
}
