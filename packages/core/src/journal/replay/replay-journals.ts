import { messageOf, SluiceError } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import type { EventDraft } from "../events.ts";
import { Cancellation } from "../host/active-run.ts";
import type { RecordedStep } from "../host/recorded-steps.ts";
import { interruptionIn, jsonText, readEvents } from "../record.ts";
import type {
  AwaitResumeEnd,
  AwaitResumeOptions,
  ChildRun,
  InterruptionListener,
  JournalRecord,
  ProgramEnd,
  ReceivedSignal,
  RecordedOutcome,
  RunChildrenOptions,
  RunEnd,
  RunJournal,
  RunProgram,
  SiblingEnd,
  SleepEnd,
  SleepOptions,
  StepCall,
  StepOptions,
  StepRunner,
  WaitOptions,
} from "../seam.ts";
import { childRunId, childrenIntent, stepIds } from "../step-id.ts";
import { differentEvents, differentValue, type Part, type RecordDifference } from "./record-diff.ts";
import { type RecordedRun, readRecordedRuns, timeOf } from "./recorded-run.ts";

/** The next record: a step with the JSON text of its value, or the run's own end. */
export type NextRecord = { readonly stepId: string; readonly value: string } | RunEnd;

export interface ReplayRequest {
  /** The journals of a run and its descendants, as `RunHost.journal` returns them. */
  readonly journals: readonly RunJournal[];
  readonly program: RunProgram;
  /** Why the run had been cancelled before its next record, if that shows it; the replay then cancels it too. */
  readonly cancelIn: (next: NextRecord) => string | undefined;
}

/** Shared by all runs of one replay. */
interface Replay extends Pick<ReplayRequest, "program" | "cancelIn"> {
  readonly runs: ReadonlyMap<string, RecordedRun>;
  /** How many steps were decided again, and how many returned their recorded values. */
  readonly counted: { decided: number; taken: number };
}

/** The outcome of a replay. */
export interface ReplayResult {
  readonly runId: string;
  /** How the recorded run ended. An unfinished run is replayed to its last record. */
  readonly status: RunEnd["status"] | "unfinished";
  readonly difference?: RecordDifference;
  /** How many steps were decided again. */
  readonly decided: number;
  /** How many steps returned their recorded values. */
  readonly taken: number;
}

/**
 * Runs a program over a recorded run and compares its decisions, record by record, up to the first difference. Steps that read or
 * changed the outside world return their recorded values. Writes nothing. Throws Host `journal_damaged`.
 */
export async function replayJournals({ journals, program, cancelIn }: ReplayRequest): Promise<ReplayResult> {
  const runs = readRecordedRuns(journals);
  const [top] = journals.filter(({ parentId }) => parentId === undefined);
  const recorded = top === undefined ? undefined : runs.get(top.runId);
  if (recorded === undefined) throw new SluiceError("Host", "journal_damaged", "these journals hold no root run");
  const counted = { decided: 0, taken: 0 };
  const difference = await new ReplayRunner(recorded, { program, cancelIn, runs, counted }).play();
  const { runId, result } = recorded;
  return {
    runId,
    status: result?.status ?? "unfinished",
    ...(difference === undefined ? {} : { difference }),
    ...counted,
  };
}

/** A kind of step in a replay. */
interface ReplayedStep<T> {
  readonly stepId: string;
  readonly open: Pick<NonNullable<StepOptions["open"]>, "events"> | undefined;
  /** Called before `hand`, also for a step whose done record is missing. */
  before?(known: RecordedStep): Promise<void>;
  /** `interrupted`: the events of an interruption during the step. */
  hand(done: JournalRecord, interrupted: readonly EventDraft[]): Promise<T> | T;
}

/** Runs a program over a recorded run: compares decisions and returns recorded values for all other steps. Writes nothing. */
class ReplayRunner implements StepRunner {
  readonly recovering = true;
  readonly beforeWork = ignore;
  readonly #recorded: RecordedRun;
  readonly #tree: Replay;
  readonly #control = new Cancellation();
  #next = 0;
  #open: string | undefined;
  #interruptible: readonly InterruptionListener[] = [];
  #over: SluiceError | undefined;
  #found: RecordDifference | undefined;
  #at = 0;

  constructor(recorded: RecordedRun, tree: Replay) {
    this.#recorded = recorded;
    this.#tree = tree;
  }

  /** Returns the first difference, or undefined if there is none. */
  async play(): Promise<RecordDifference | undefined> {
    const input: Json = JSON.parse(this.#recorded.start.value);
    this.#timed(this.#recorded.start);
    try {
      this.#cancelIfShown();
      this.#ended(await this.#tree.program(this, input));
    } catch (thrown) {
      // At the end of an unfinished run's records, the rejection is the replay's own.
      if (!this.#atEnd) this.#threw(this.#recorded.steps[this.#next - 1]?.stepId ?? "", thrown);
    }
    return this.#found;
  }

  get runId(): string {
    return this.#recorded.runId;
  }

  /** Whether a run without an end of its own has no more recorded steps. */
  get #atEnd(): boolean {
    return this.#recorded.end === undefined && this.#next >= this.#recorded.steps.length;
  }

  get incarnation(): string {
    return this.#recorded.start.incarnation;
  }

  get signal(): AbortSignal {
    return this.#control.signal;
  }

  run<T extends Json>(
    stepId: string,
    fn: (call: StepCall) => Promise<T> | T,
    options: StepOptions<T> = {},
  ): Promise<T> {
    const { open, decides } = options;
    return this.#step({
      stepId,
      open,
      hand: async (done) => {
        if (this.#isCopied(done)) return this.#valueOf(done);
        const outcome = this.#outcomeOf(done);
        // What a person interrupted ended otherwise than its code alone would have.
        const isInterrupted = interruptionIn(this.runId, done) !== undefined;
        if (isInterrupted || decides === undefined || !decides(outcome)) return this.#valueOf(done);
        this.#tree.counted.decided += 1;
        const events: EventDraft[] = [];
        const call: StepCall = {
          signal: this.signal,
          recorded: outcome,
          event: (draft) => void events.push(draft),
          signals: () => [],
          hold: ignore,
        };
        const value = await this.#decided(stepId, async () => fn(call));
        const text = jsonText(value, `the value of step ${stepId}`);
        this.#compare(done, differentValue("value", done.value, text));
        this.#compareEvents("event", done, events);
        // The value as a resume would return it.
        return JSON.parse(done.value);
      },
    });
  }

  now(stepId: string): Promise<number> {
    return this.#step({ stepId, open: undefined, hand: (done) => this.#valueOf<number>(done) });
  }

  sleepUntil(stepId: string): Promise<void> {
    return this.#step({ stepId, open: undefined, hand: (done) => void this.#valueOf(done) });
  }

  sleep(stepId: string, epochMs: number, { open, ended }: SleepOptions): Promise<SleepEnd> {
    const intent = jsonText({ until: epochMs }, `the sleep ${stepId}`);
    return this.#step({
      stepId,
      open,
      before: async ({ open: announced }) => {
        if (announced !== undefined && !this.#isCopied(announced))
          this.#compare(announced, differentValue("announced", announced.value, intent));
      },
      hand: (done, interrupted) => {
        const by: SleepEnd = this.#valueOf(done);
        if (!this.#isCopied(done)) this.#compareEvents("event", done, [...ended(by), ...interrupted]);
        return by;
      },
    });
  }

  awaitResume(stepId: string, { fault, open, ended }: AwaitResumeOptions): Promise<AwaitResumeEnd> {
    const intent = jsonText(fault, `the fault of ${stepId}`);
    return this.#step({
      stepId,
      open,
      before: async ({ open: announced }) => {
        if (announced !== undefined && !this.#isCopied(announced))
          this.#compare(announced, differentValue("announced", announced.value, intent));
      },
      hand: (done, interrupted) => {
        const by: AwaitResumeEnd = this.#valueOf(done);
        if (!this.#isCopied(done)) this.#compareEvents("event", done, [...ended(by), ...interrupted]);
        return by;
      },
    });
  }

  waitForSignal(name: string, { timeoutMs, until }: WaitOptions = {}): Promise<ReceivedSignal | undefined> {
    const open = (timeoutMs ?? until) === undefined ? undefined : { events: [] };
    const hand = (done: JournalRecord): ReceivedSignal | undefined => {
      const received: ReceivedSignal | null = this.#valueOf(done);
      return received ?? undefined;
    };
    return this.#step({ stepId: stepIds.wait(name), open, hand });
  }

  takeSignals(stepId: string): Promise<readonly ReceivedSignal[]> {
    return this.#step({ stepId, open: undefined, hand: (done) => this.#valueOf<readonly ReceivedSignal[]>(done) });
  }

  runChildren(
    stepId: string,
    children: readonly ChildRun[],
    { open, joined }: RunChildrenOptions,
  ): Promise<Readonly<Record<string, SiblingEnd>>> {
    const intent = jsonText(childrenIntent(children), `the children of ${stepId}`);
    return this.#step({
      stepId,
      open,
      before: async ({ open: announced, done }) => {
        if (announced !== undefined && !this.#isCopied(announced))
          this.#compare(announced, differentValue("announced", announced.value, intent));
        if (done === undefined || !this.#isCopied(done)) await this.#playChildren(stepId, children);
      },
      hand: (done, interrupted) => {
        const settled: Readonly<Record<string, SiblingEnd>> = this.#valueOf(done);
        if (!this.#isCopied(done)) this.#compareEvents("event", done, [...joined(settled), ...interrupted]);
        return settled;
      },
    });
  }

  interruptible(listen: InterruptionListener | undefined): () => void {
    if (listen === undefined) return ignore;
    this.#interruptible = [...this.#interruptible, listen];
    return () => {
      this.#interruptible = this.#interruptible.filter((each) => each !== listen);
    };
  }

  whenInterrupted(): () => void {
    return ignore;
  }

  /** Only a record of an interruption leads here, after which the run continued. */
  suspend(): Promise<never> {
    return Promise.reject(this.#stop());
  }

  emit(): void {
    return;
  }

  heard(): boolean {
    return false;
  }

  #step<T>(step: ReplayedStep<T>): Promise<T> {
    const settling = this.#walk(step);
    // An unawaited step must not crash the process; `play` reports the rejection.
    settling.catch(ignore);
    return settling;
  }

  async #walk<T>({ stepId, open, before, hand }: ReplayedStep<T>): Promise<T> {
    const known = this.#enter(stepId);
    try {
      if (known.open !== undefined) this.#timed(known.open);
      this.#compareOpen(known, open);
      await before?.(known);
      if (known.done === undefined) throw this.#stop();
      this.#timed(known.done);
      const interruption = interruptionIn(this.runId, known.done);
      const interrupted = interruption === undefined ? undefined : this.#interruptible.at(-1)?.(interruption);
      const value = await hand(known.done, interrupted ?? []);
      this.#cancelIfShown();
      return value;
    } finally {
      this.#open = undefined;
    }
  }

  #enter(stepId: string): RecordedStep {
    if (this.#over !== undefined) throw this.#over;
    if (this.#open !== undefined) {
      const message = `run ${this.runId}: step ${stepId} was started while ${this.#open} is open; use runChildren() for concurrency`;
      throw this.#threw(stepId, new Error(message));
    }
    const known = this.#recorded.steps[this.#next];
    const { last } = this.#recorded;
    if (this.#atEnd) throw this.#stop();
    const record = known?.open ?? known?.done ?? last;
    if (known?.stepId !== stepId) {
      const recorded = known?.stepId;
      throw this.#differ(record, stepId, { part: "step", path: "$", recorded, now: stepId });
    }
    this.#open = stepId;
    this.#next += 1;
    return known;
  }

  #compareOpen({ stepId, open: recorded, done }: RecordedStep, open: ReplayedStep<unknown>["open"]): void {
    const record = recorded ?? done;
    if (record === undefined || this.#isCopied(record)) return;
    if ((open === undefined) !== (recorded === undefined)) {
      const words = (is: boolean): string => (is ? "has an open record" : "has no open record");
      const difference = { path: "$", recorded: words(recorded !== undefined), now: words(open !== undefined) };
      throw this.#differ(record, stepId, { part: "announced", ...difference });
    }
    if (open !== undefined) this.#compareEvents("announced", record, open.events);
  }

  async #decided<T>(stepId: string, decide: () => Promise<T>): Promise<T> {
    try {
      return await decide();
    } catch (thrown) {
      throw this.#threw(stepId, thrown);
    }
  }

  /** Replays children one after the other. Reports the difference whose record was written first. */
  async #playChildren(stepId: string, children: readonly ChildRun[]): Promise<void> {
    let first: RecordDifference | undefined;
    for (const child of children) {
      const recorded = this.#tree.runs.get(childRunId(this.runId, stepId, child.key));
      if (recorded === undefined || recorded.own > recorded.last.seq) continue;
      const runner = new ReplayRunner(recorded, this.#tree);
      const found = runner.#compareStart(child) ?? (await runner.play());
      if (found !== undefined && (first === undefined || found.at < first.at)) first = found;
    }
    if (first !== undefined) throw this.#stop(first);
  }

  /** Compares a child's input and first events with the recorded ones. */
  #compareStart({ key, input, inputAs, events }: ChildRun): RecordDifference | undefined {
    const { start } = this.#recorded;
    const now = inputAs === undefined ? input : inputAs(JSON.parse(start.value));
    const part =
      differentValue("input", start.value, jsonText(now, `the input of ${key}`)) ??
      differentEvents("event", { runId: this.runId, record: start }, events);
    return part === undefined ? undefined : this.#differenceAt(start, start.stepId, part);
  }

  #ended({ status, value, events }: ProgramEnd): void {
    const { steps, end } = this.#recorded;
    const left = steps[this.#next];
    const record = left?.open ?? left?.done;
    if (left !== undefined && record !== undefined) {
      this.#differ(record, left.stepId, { part: "step", path: "$", recorded: left.stepId, now: undefined });
      return;
    }
    if (end === undefined) return;
    const part =
      differentValue("end", end.value, jsonText({ status, value }, "the end")) ??
      differentEvents("event", { runId: this.runId, record: end }, events);
    if (part !== undefined) this.#differ(end, end.stepId, part);
  }

  #compareEvents(part: "event" | "announced", record: JournalRecord, drafts: readonly EventDraft[]): void {
    this.#compare(record, differentEvents(part, { runId: this.runId, record }, drafts));
  }

  #compare(record: JournalRecord, part: Part | undefined): void {
    if (part !== undefined) throw this.#differ(record, record.stepId, part);
  }

  #threw(stepId: string, thrown: unknown): SluiceError {
    const known = this.#recorded.steps[Math.max(0, this.#next - 1)];
    const record = known?.done ?? known?.open ?? this.#recorded.last;
    return this.#differ(record, stepId, { part: "fault", path: "$", recorded: undefined, now: messageOf(thrown) });
  }

  #differ(record: JournalRecord, stepId: string, part: Part): SluiceError {
    return this.#stop(this.#differenceAt(record, stepId, part));
  }

  #differenceAt(record: JournalRecord, stepId: string, part: Part): RecordDifference {
    const at = timeOf(this.runId, record) ?? this.#at;
    return { runId: this.runId, seq: record.seq, stepId, at, ...part };
  }

  /**
   * Ends the replay of this run, at a difference or after its last record. Every further step rejects, and only the first
   * difference counts.
   */
  #stop(found?: RecordDifference): SluiceError {
    if (this.#over !== undefined) return this.#over;
    this.#found = found;
    this.#over = new SluiceError("Host", "run_stopped", `the replay of run ${this.runId} ends here`);
    this.#control.stop(this.#over);
    return this.#over;
  }

  /** Whether a record was copied from another run, which may have had another pipeline, mode or folder. */
  #isCopied({ seq }: JournalRecord): boolean {
    return seq < this.#recorded.own;
  }

  #valueOf<T>(done: JournalRecord): T {
    this.#tree.counted.taken += 1;
    return JSON.parse(done.value);
  }

  /** Cancels the run just before its records first show that it had been cancelled. */
  #cancelIfShown(): void {
    const { steps, end, result, cancelled } = this.#recorded;
    const { cancelIn } = this.#tree;
    const next = steps[this.#next];
    let reason: string | undefined;
    if (next === undefined) reason = end === undefined || result === undefined ? undefined : cancelIn(result);
    else if (next.done !== undefined) reason = cancelIn({ stepId: next.stepId, value: next.done.value });
    if (reason === undefined) return;
    // That of a person is recorded; a sibling's failure only in what it ended.
    this.#control.cancel(new SluiceError("Cancellation", "run_cancelled", cancelled ?? reason));
  }

  #outcomeOf(record: JournalRecord): RecordedOutcome {
    return { value: record.value, events: readEvents(this.runId, record) };
  }

  #timed(record: JournalRecord): void {
    this.#at = timeOf(this.runId, record) ?? this.#at;
  }
}

function ignore(): void {
  return;
}
