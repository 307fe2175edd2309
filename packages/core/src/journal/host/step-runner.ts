import { SluiceError } from "../../base/errors.ts";
import { field, isPromiseLike, type Json } from "../../base/json.ts";
import type { EventDraft } from "../events.ts";
import {
  appendRecord,
  INTERRUPTION_MARK,
  interruptionIn,
  jsonText,
  type RecordDraft,
  toRecordedValue,
} from "../record.ts";
import type {
  AwaitResumeEnd,
  AwaitResumeOptions,
  ChildRun,
  Interruption,
  InterruptionListener,
  JournalRecord,
  ProgramEnd,
  ReceivedSignal,
  RunChildrenOptions,
  SiblingEnd,
  SignalsTaken,
  SleepEnd,
  SleepOptions,
  StepCall,
  StepCost,
  StepOptions,
  StepRunner,
  WaitOptions,
} from "../seam.ts";
import { childrenIntent, END_STATUSES, stepIds } from "../step-id.ts";
import {
  type ActiveRun,
  type CancellationListener,
  type StepContext,
  SUSPENDED,
  stopOnFailure,
  waitForSignal,
} from "./active-run.ts";
import { INTERRUPTION_SIGNAL, ProgramInterruptions } from "./interruptions.ts";
import { type RecordedStep, readOpenRecord } from "./recorded-steps.ts";
import { checkChildren, runChildren } from "./run-children.ts";

const NO_EVENTS: readonly EventDraft[] = [];

/** A kind of step. */
interface Step<V, T> {
  readonly stepId: string;
  /** The content of the open record, which is written before `make`; removed once it is written. Without it there is no open record. */
  open?: StepOptions["open"];
  /** Throws if this cannot be the recorded step; `known` is its open record, if any. */
  check?(known: JournalRecord | undefined): void;
  /** Of a wait that ends by itself: when. Its records then say when the run continues without an owner. */
  readonly until?: number | undefined;
  /** Makes the value to record; not called for a done step. `fresh`: no earlier process began this step. */
  make(opened: StepCall["opened"], fresh: boolean): Promise<V> | V;
  /** The call whose function `make` runs; set by `make`. */
  call?: RunningCall | undefined;
  /** The events of the done record, besides those of the call. */
  events?(value: V): readonly EventDraft[];
  /** What the done record says that the step used. */
  readonly cost?: ((value: V) => StepCost | undefined) | undefined;
  /** Whether it runs children, which may have records of their own to follow: then `make` says when they have begun. */
  readonly runsChildren?: true;
  /** Converts the recorded value to what the program gets, now and on resume. */
  hand(value: V): T;
}
type AnyStep = Pick<Step<unknown, unknown>, "stepId" | "open" | "until">;

/** Numbers the steps of one program, records their values, and returns recorded ones. */
export class ProgramRunner implements StepRunner {
  readonly runId: string;
  readonly incarnation: string;
  readonly signal: AbortSignal;
  /** A field, since it is read whenever an execution takes a slot. */
  recovering = false;
  #beforeWork: ((recovered: Promise<void>) => Promise<void>) | undefined;
  #isCalledAlways = false;
  readonly #run: ActiveRun;
  /** Signals taken so far, by name; created on first use, like the next. */
  #taken: Map<string, number> | undefined;
  #forks: Set<string> | undefined;
  #nextOrdinal = 0;
  /** Whether the current step was copied from another run, whose signals were never in this run's inbox. */
  #copied = false;
  #open: AnyStep | undefined;
  /** The open step's promise. */
  #settling: Promise<unknown> | undefined;
  #fault: { readonly thrown: unknown } | undefined;
  #ended = false;
  readonly #interruptions: ProgramInterruptions;
  /** Whether the open step is executed: it is not read, and its result is not being appended. */
  #isWorking = false;
  #runsChildren = false;
  /** Whether it waits before a step until what a person interrupted has ended: it has nothing to interrupt. */
  #isHeld = false;

  constructor(run: ActiveRun) {
    this.#run = run;
    this.runId = run.at.runId;
    this.incarnation = run.at.incarnation;
    this.signal = run.control.signal;
    this.#interruptions = new ProgramInterruptions(run.control);
    if (run.recorded.left) run.tree.recovery?.join(this);
  }

  run<T extends Json>(
    stepId: string,
    fn: (call: StepCall) => Promise<T> | T,
    options: StepOptions<T> = {},
  ): Promise<T> {
    const { graceMs = 0 } = options;
    const takes = options.takes === undefined ? NO_TAKES : takesOf(options.takes);
    const own = takes.find(({ name }) => isOfRun(name));
    if (own !== undefined)
      return Promise.reject(this.#misuse("signals_taken", `step ${stepId} cannot take signals named ${own.name}`));
    const signals: StepCall["signals"] = (name = takes[0]?.name) =>
      name !== undefined && takes.some((each) => each.name === name) ? this.#untaken(name) : [];
    const step: Step<T, T> = {
      stepId,
      open: options.open,
      call: undefined,
      make: (opened) => {
        const call = new RunningCall(this.#run, { opened, graceMs, signals });
        step.call = call;
        return call.resultOf(fn);
      },
      cost: options.cost,
      hand: (value) => {
        for (const { name, count } of takes) this.#take(name, count(value));
        return value;
      },
    };
    return this.#step(step);
  }

  now(stepId: string): Promise<number> {
    return this.run(stepId, () => this.#run.clock.now());
  }

  sleepUntil(stepId: string, epochMs: number): Promise<void> {
    return this.#step<null, void>({
      stepId,
      make: async () => {
        await waitForSignal(this.#run, { until: epochMs });
        return null;
      },
      hand: ignore,
    });
  }

  sleep(stepId: string, epochMs: number, { signal, open, ended }: SleepOptions): Promise<SleepEnd> {
    const { control } = this.#run;
    const arrived = async (): Promise<boolean> => signal !== undefined && (await this.#untaken(signal)).length > 0;
    return this.#step<SleepEnd, SleepEnd>({
      stepId,
      open: { events: open.events, intent: { until: epochMs } },
      until: epochMs,
      make: async () => {
        let heard = false;
        const hears = async (): Promise<boolean> => (heard ||= await arrived());
        await waitForSignal(this.#run, {
          rest: "sleep",
          until: epochMs,
          ...(signal === undefined ? {} : { arrived: hears }),
        });
        if (heard) return "signal";
        return (control.cancelled ?? control.interrupted) === undefined ? "time" : "cancelled";
      },
      events: ended,
      hand: (by) => by,
    });
  }

  awaitResume(stepId: string, { fault, open, ended }: AwaitResumeOptions): Promise<AwaitResumeEnd> {
    const { control } = this.#run;
    const { retryAt } = fault;
    return this.#step<AwaitResumeEnd, AwaitResumeEnd>({
      stepId,
      open: { events: open.events, intent: fault },
      until: retryAt,
      make: async (opened) => {
        if (opened !== undefined && opened.incarnation !== this.incarnation) return "resume";
        await waitForSignal(this.#run, { rest: "fault", fault, until: retryAt });
        return (control.cancelled ?? control.interrupted) === undefined ? "time" : "cancelled";
      },
      events: ended,
      hand: (by) => by,
    });
  }

  waitForSignal(name: string, options: WaitOptions = {}): Promise<ReceivedSignal | undefined> {
    const { timeoutMs, until: end, begun, take } = options;
    const { store, clock } = this.#run;
    const latest = end ?? (timeoutMs === undefined ? undefined : clock.now() + timeoutMs);
    let events = NO_EVENTS;
    return this.#step<ReceivedSignal | null, ReceivedSignal | undefined>({
      stepId: stepIds.wait(name),
      open: latest === undefined ? undefined : { events: NO_EVENTS, intent: { until: latest } },
      until: latest,
      make: async (opened) => {
        const until = latest === undefined ? undefined : untilOf(opened);
        let found: ReceivedSignal | undefined;
        const arrived = async (): Promise<boolean> => {
          found ??= (await store.signals(this.runId, name))[this.#takenSoFar(name)];
          return found !== undefined;
        };
        const isEarlier = await waitForSignal(this.#run, { rest: "signal", arrived, until, begun });
        // Decided here, since a check that is still running must not change what is recorded.
        if (found === undefined) return null;
        if (take === undefined) return found;
        const taken = take(found.payload, isEarlier);
        events = taken.events;
        return { ...found, payload: taken.payload };
      },
      events: () => events,
      hand: (received) => {
        if (received !== null) this.#take(name, 1);
        return received ?? undefined;
      },
    });
  }

  takeSignals(stepId: string, name: string): Promise<readonly ReceivedSignal[]> {
    return this.#step<readonly ReceivedSignal[], readonly ReceivedSignal[]>({
      stepId,
      make: () => this.#untaken(name),
      hand: (received) => {
        this.#take(name, received.length);
        return received;
      },
    });
  }

  runChildren(
    stepId: string,
    children: readonly ChildRun[],
    options: RunChildrenOptions,
  ): Promise<Readonly<Record<string, SiblingEnd>>> {
    return this.#step<Readonly<Record<string, SiblingEnd>>, Readonly<Record<string, SiblingEnd>>>({
      stepId,
      open: { events: options.open.events, intent: childrenIntent(children) },
      check: (known) => {
        this.#forks ??= new Set();
        if (this.#forks.has(stepId))
          throw this.#misuse("fork_repeated", `step ${stepId} ran children twice under the same ids`);
        this.#forks.add(stepId);
        checkChildren(this.runId, stepId, children, known);
      },
      runsChildren: true,
      make: async (_opened, fresh) => {
        // Not this program is interrupted meanwhile, but its children.
        this.#runsChildren = true;
        try {
          const followed = (): Promise<void> => {
            this.#run.tree.recovery?.leave(this);
            return this.recovered();
          };
          return await runChildren(this.#run, stepId, children, options, fresh ? undefined : followed);
        } finally {
          this.#runsChildren = false;
        }
      },
      events: options.joined,
      hand: (settled) => settled,
    });
  }

  get canBeInterrupted(): boolean {
    return this.#interruptions.isAwaited && !this.#runsChildren && !this.#isHeld;
  }

  interruptible(listen: InterruptionListener | undefined): () => void {
    const { interruptions } = this.#run.tree;
    const remove = this.#interruptions.add(listen, () => interruptions.rest(this));
    interruptions.continues(this);
    return remove;
  }

  interrupt(interruption: Interruption): void {
    this.#interruptions.arrive(interruption, this.#isWorking);
  }

  whenInterrupted(listener: () => void): () => void {
    return this.#interruptions.whenWaiting(listener);
  }

  suspend(): Promise<never> {
    const suspended = this.#untilStopped<never>();
    this.#run.tree.interruptions.rest(this);
    return suspended;
  }

  /** Rejects when the run has to stop, unless something else comes first. */
  #untilStopped<T>(first?: Promise<T>): Promise<T> {
    const { control } = this.#run;
    return new Promise((resolve, reject) => {
      const controlChanged = (): void => {
        if (control.stopped !== undefined) reject(control.stopped);
      };
      control.listener = { controlChanged };
      controlChanged();
      first?.then(resolve, reject);
    });
  }

  #interruptNow(): void {
    this.#run.tree.interruptions.check();
    this.#interruptions.pass();
  }

  /** Calls the listener as it was called when this step was executed. */
  #interruptedBefore(done: JournalRecord): void {
    const interruption = interruptionIn(this.runId, done);
    if (interruption !== undefined) this.#interruptions.call(interruption);
  }

  emit(channel: string, chunk: Json): void {
    this.#run.tree.emit({ runId: this.runId, channel, chunk });
  }

  heard(): boolean {
    return this.#run.tree.heard();
  }

  /** Checks the end that the program returned. Throws if a step failed or is open, or if the run has to stop. */
  ended(end: ProgramEnd): ProgramEnd {
    const { control, recorded } = this.#run;
    if (!END_STATUSES.includes(end.status))
      throw this.#misuse("end_invalid", `the program returned the status ${String(end.status)}, which does not exist`);
    if (this.#open !== undefined) {
      const message = `the program ended while step ${this.#open.stepId} was open; await every step`;
      throw this.#misuse("step_left_open", message);
    }
    // An end that the program returned after a stop does not count.
    if (control.stopped !== undefined) throw control.stopped;
    if (recorded.left) recorded.finish();
    if (this.#fault !== undefined) throw this.#fault.thrown;
    this.#ended = true;
    return end;
  }

  /**
   * Handles a program that threw or returned no valid end: rejects with the first fault of any step. For a run that was cancelled
   * before all its recorded steps were read, returns the reason of the cancel, since its code cannot continue its records.
   */
  async failed(thrown: unknown): Promise<string> {
    const { control, tree } = this.#run;
    this.#fail(thrown);
    const fault = this.#fault?.thrown;
    const early = this.#cancelledEarly;
    if (early !== undefined && fault === early) {
      if (control.stopped !== undefined) throw control.stopped;
      tree.recovery?.leave(this);
      return early.message;
    }
    if (this.#open !== undefined) {
      tree.stop(fault);
      await Promise.allSettled([this.#settling]);
    }
    throw fault;
  }

  /** Takes a step. A rejection stops the run here. */
  #step<V, T>(step: Step<V, T>): Promise<T> {
    const settling = this.#walk(step);
    if (this.#open === step) this.#settling = settling;
    else settling.catch(ignore);
    return settling;
  }

  async #walk<V, T>(step: Step<V, T>): Promise<T> {
    const { stepId } = step;
    try {
      const { ordinal, known } = this.#enter(step);
      step.check?.(known?.open);
      if (this.recovering && !this.#run.recorded.left) this.#followed(step, known);
      if (known?.done !== undefined) {
        this.#copied = known.copied === true;
        // Each record is asked, and few are of an interruption.
        if (known.done.events.includes(INTERRUPTION_MARK)) this.#interruptedBefore(known.done);
        const recorded = step.hand(JSON.parse(known.done.value));
        this.#copied = false;
        // Awaited, so that overlapping steps fail on a resume as they do on the first run.
        return await Promise.resolve(recorded);
      }
      // Written out, too: only a resumed run has something to wait for.
      const isWaiting = this.#run.tree.recovery?.isOver === false || this.#isCalledAlways;
      if (isWaiting && !this.recovering) await this.recovered();
      this.#isWorking = true;
      // Written out, since every step comes here and few runs are ever interrupted.
      if (this.#run.tree.interruptions.pending || this.#interruptions.waiting !== undefined) this.#interruptNow();
      if (this.#run.tree.interruptions.isUnderWay) await this.#interruptionOver();
      const openRecord = known?.open;
      const opened =
        openRecord === undefined ? step.open && this.#commitOpen(ordinal, step) : readOpenRecord(openRecord);
      // Awaited even if it is no promise, so that steps overlap whatever their functions return.
      const made = await step.make(opened instanceof Promise ? await opened : opened, openRecord === undefined);
      step.call?.close();
      const { text, value } = toRecordedValue(made, `the value of step ${stepId}`);
      // An interruption that arrives while the result is appended is no part of the record, so it waits for the next step.
      this.#isWorking = false;
      const own = step.call?.events ?? step.events?.(value) ?? NO_EVENTS;
      const isInterrupted = this.#interruptions.events.length > 0;
      const events = isInterrupted ? [...own, ...this.#interruptions.takeEvents()] : own;
      const cost = step.cost?.(value);
      // A run that has slept works unattended: if its process dies now, it is due at once.
      const wakeAt = step.until === undefined ? undefined : 0;
      const appending = this.#append({ ordinal, stepId, phase: "done", value: text, events, cost, wakeAt });
      if (appending !== undefined) await appending;
      return step.hand(value);
    } catch (thrown) {
      // An unawaited step must not crash the process; `ended` and `failed` report the rejection.
      if (this.#open === step) this.#settling?.catch(ignore);
      step.call?.close();
      this.#fail(thrown);
      throw thrown;
    } finally {
      if (this.#open === step) {
        this.#open = undefined;
        this.#isWorking = false;
      }
    }
  }

  /** The program takes its last recorded step, or one that is not recorded. */
  #followed({ runsChildren }: Pick<Step<unknown, unknown>, "runsChildren">, known: RecordedStep | undefined): void {
    const { recovery } = this.#run.tree;
    // What the program does at once with the last value may not match either.
    if (known?.done !== undefined) setImmediate(() => recovery?.leave(this));
    // Children that are resumed have to follow their records, too.
    else if (runsChildren !== true || known?.open === undefined) recovery?.leave(this);
  }

  beforeWork(listener: (recovered: Promise<void>) => Promise<void>, always: boolean): void {
    this.#beforeWork = listener;
    this.#isCalledAlways = always;
  }

  /** Begins nothing while others end what a person interrupted. Rejects if the run has to stop. */
  async #interruptionOver(): Promise<void> {
    const { interruptions } = this.#run.tree;
    while (interruptions.holds(this)) {
      this.#isHeld = true;
      await this.#untilStopped(interruptions.over);
      this.#isHeld = false;
      if (this.#run.control.stopped !== undefined) throw this.#run.control.stopped;
      if (interruptions.pending || this.#interruptions.waiting !== undefined) this.#interruptNow();
    }
  }

  /** Waits until no program of the tree follows records. Rejects if the run has to stop. */
  async recovered(): Promise<void> {
    const { control, tree } = this.#run;
    const isOver = tree.recovery?.wait() ?? Promise.resolve();
    const listener = this.#beforeWork;
    this.#beforeWork = undefined;
    this.#isCalledAlways = false;
    await (listener === undefined ? isOver : listener(isOver));
    if (control.stopped !== undefined) throw control.stopped;
  }

  /** Synchronously numbers a step and finds its records. */
  #enter(step: AnyStep): { readonly ordinal: number; readonly known: RecordedStep | undefined } {
    const { control, recorded } = this.#run;
    const { stepId } = step;
    if (this.#fault !== undefined) throw this.#fault.thrown;
    const early = this.#cancelledEarly;
    if (early !== undefined) throw early;
    if (this.#ended) throw this.#misuse("run_over", "a step was started after the program had ended");
    if (control.stopped !== undefined) throw control.stopped;
    if (this.#open !== undefined) {
      const message = `step ${stepId} was started while ${this.#open.stepId} is open; use runChildren() for concurrency`;
      throw this.#misuse("step_overlap", message);
    }
    if (stepId === "" || !stepId.isWellFormed()) {
      throw this.#misuse("step_id_invalid", `"${stepId}" is not a valid step id`);
    }
    this.#open = step;
    const ordinal = this.#nextOrdinal;
    this.#nextOrdinal += 1;
    return { ordinal, known: recorded.left ? recorded.take(ordinal, stepId) : undefined };
  }

  /** Commits a step's open record. Fails if the run has to stop between the record and the effect. */
  #commitOpen(ordinal: number, step: AnyStep): Promise<StepCall["opened"]> | StepCall["opened"] {
    const { control, at, tree } = this.#run;
    const { stepId, open } = step;
    if (open === undefined) return undefined;
    const { events, intent, cost } = open;
    // Frees the memory while the step runs.
    step.open = undefined;
    const value = intent === undefined ? "" : jsonText(intent, `the intent of step ${stepId}`);
    const wakeAt = step.until === undefined ? undefined : Math.min(step.until, tree.wakeAt() ?? step.until);
    const opened = (): StepCall["opened"] => {
      if (control.stopped !== undefined) throw control.stopped;
      const { incarnation } = at;
      return { incarnation, ...(intent === undefined ? {} : { intent }), ...(cost === undefined ? {} : { cost }) };
    };
    const appending = this.#append({ ordinal, stepId, phase: "open", value, events, cost, wakeAt });
    return appending instanceof Promise ? appending.then(opened) : opened();
  }

  #append(record: RecordDraft): Promise<void> | void {
    const { store, at, clock, tree } = this.#run;
    try {
      const appending = appendRecord(store, at, record, clock);
      return appending instanceof Promise ? stopOnFailure(tree, () => appending) : appending;
    } catch (thrown) {
      tree.stop(thrown);
      throw thrown;
    }
  }

  /** The cancellation, if it came before all recorded steps were read. */
  get #cancelledEarly(): SluiceError | undefined {
    const { control, recorded } = this.#run;
    return recorded.left ? control.cancelled : undefined;
  }

  /** Only the first fault counts. */
  #fail(thrown: unknown): void {
    this.#fault ??= { thrown: this.#cancelledEarly ?? thrown };
  }

  #untaken(name: string): Promise<readonly ReceivedSignal[]> | readonly ReceivedSignal[] {
    const received = this.#run.store.signals(this.runId, name);
    const taken = this.#takenSoFar(name);
    if (!isPromiseLike(received)) return received.slice(taken);
    return Promise.resolve(received).then((all) => all.slice(taken));
  }

  #take(name: string, count: number): void {
    if (!Number.isSafeInteger(count) || count < 0)
      throw this.#misuse("signals_taken", `${String(count)} is not a valid number of signals named ${name} to take`);
    if (count === 0 || this.#copied) return;
    this.#taken ??= new Map();
    this.#taken.set(name, this.#takenSoFar(name) + count);
  }

  #takenSoFar(name: string): number {
    return this.#taken?.get(name) ?? 0;
  }

  #misuse(code: string, message: string): SluiceError {
    return new SluiceError("Host", code, `run ${this.runId}: ${message}`);
  }
}

const NO_TAKES: readonly SignalsTaken[] = [];
/** A copy, since the list of a kind and its members could read differently each time. */
function takesOf(given: Iterable<SignalsTaken>): readonly SignalsTaken[] {
  return [...given].map(({ name, count }) => ({ name, count }));
}

/** Answers of requests and interruptions: only the run may take them. */
function isOfRun(signal: unknown): boolean {
  return typeof signal !== "string" || signal.startsWith("request/") || signal === INTERRUPTION_SIGNAL;
}

function ignore(): void {
  return;
}

function untilOf(opened: StepCall["opened"]): number | undefined {
  const until = field(opened?.intent, "until");
  return typeof until === "number" ? until : undefined;
}

/** What a call is for its step. */
interface CallOptions {
  readonly opened: StepCall["opened"];
  readonly graceMs: number;
  readonly signals: StepCall["signals"];
}

/** The argument of a running step's function. When the run has to stop, its signal aborts after the grace period and it is abandoned. */
export class RunningCall implements StepCall, CancellationListener {
  readonly opened?: NonNullable<StepCall["opened"]>;
  readonly signals: StepCall["signals"];
  readonly #around: StepContext;
  readonly #graceMs: number;
  #events: EventDraft[] | undefined;
  #controller: AbortController | undefined;
  #aborted: SluiceError | undefined;
  #work: Promise<unknown> | undefined;
  #reject: ((reason: unknown) => void) | undefined;
  #disarm: (() => void) | undefined;

  constructor(around: StepContext, { opened, graceMs, signals }: CallOptions) {
    if (opened !== undefined) this.opened = opened;
    this.signals = signals;
    this.#around = around;
    this.#graceMs = graceMs;
    const { control } = around;
    this.#aborted = control.cancelled ?? control.interrupted;
  }

  // Functions of their own, since they are passed on without the call; made on access, since a waiting call has few of them.
  get event(): StepCall["event"] {
    return (draft) => {
      this.#events ??= [];
      this.#events.push(draft);
    };
  }

  get hold(): StepCall["hold"] {
    return (work) => this.#around.tree.hold(work);
  }

  get events(): readonly EventDraft[] {
    return this.#events ?? NO_EVENTS;
  }

  /** Created on first access, since most steps never need the costly controller. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#aborted !== undefined) this.#controller.abort(this.#aborted);
    }
    return this.#controller.signal;
  }

  /** What the step's function returns. Rejects if the run has to stop first. */
  resultOf<T>(fn: (call: StepCall) => Promise<T> | T): Promise<T> | T {
    const { control } = this.#around;
    const work = fn(this);
    if (!isPromiseLike(work)) return work;
    const working = Promise.resolve(work);
    this.#work = working;
    return new Promise((resolve, reject) => {
      this.#reject = reject;
      working.then(resolve, reject);
      control.listener = this;
      // The function may have stopped the run before it returned its promise.
      if ((control.stopped ?? control.cancelled ?? control.interrupted) !== undefined) this.controlChanged();
    });
  }

  controlChanged(): void {
    const { control, clock } = this.#around;
    if (control.stopped === undefined) this.#abort(control.cancelled ?? control.interrupted);
    else if (control.stopped.code === SUSPENDED && this.#graceMs > 0)
      this.#disarm ??= clock.after(this.#graceMs, () => this.#abandon());
    else this.#abandon();
  }

  close(): void {
    const { control } = this.#around;
    if (control.listener === this) control.listener = undefined;
    this.#disarm?.();
  }

  #abandon(): void {
    const { control, tree } = this.#around;
    this.#abort(control.stopped);
    // The abandoned code could still act, so the run stays locked until it ends.
    if (this.#work !== undefined) tree.hold(this.#work);
    this.close();
    this.#reject?.(control.stopped);
  }

  #abort(reason: SluiceError | undefined): void {
    this.#aborted ??= reason;
    this.#controller?.abort(this.#aborted);
  }
}
