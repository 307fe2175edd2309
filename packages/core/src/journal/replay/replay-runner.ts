import { messageOf, SluiceError } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import type { EventDraft } from "../events.ts";
import { Cancellation } from "../host/active-run.ts";
import type { RecordedStep } from "../host/recorded-steps.ts";
import { jsonText } from "../record/append.ts";
import { readEvents } from "../record/hash-chain.ts";
import type {
  ChildRun,
  JournalRecord,
  ProgramEnd,
  ReceivedSignal,
  RecordedOutcome,
  RunChildrenOptions,
  RunEnd,
  RunProgram,
  SiblingEnd,
  StepCall,
  StepOptions,
  StepRunner,
  WaitOptions,
} from "../seam.ts";
import { childRunId, childrenIntent, stepIds } from "../step-id.ts";
import { differentEvents, differentValue, type Part, type RecordDifference } from "./record-diff.ts";
import { type RecordedRun, timeOf } from "./recorded-run.ts";

/** What all runs of one replay share. */
export interface ReplayTree {
  readonly program: RunProgram;
  tapeOf(runId: string): RecordedRun | undefined;
  /** Whether the run was told to end before what follows on its tape; see `ReplayRequest`. */
  readonly showsCancel: (next: NextRecord) => boolean;
  /** Counts a step that was decided anew, or handed back. */
  readonly count: (how: "decided" | "taken") => void;
}

/** What follows on a tape: a step with the JSON text of its value, or the run's own end. */
export type NextRecord = { readonly stepId: string; readonly value: string } | { readonly status: RunEnd["status"] };

/** One kind of step, as it is replayed. */
interface ReplayedStep<T> {
  readonly stepId: string;
  readonly open: Pick<NonNullable<StepOptions["open"]>, "events"> | undefined;
  /** Before anything is handed back, also where the record ends with the step at work. */
  before?(known: RecordedStep): Promise<void>;
  hand(done: JournalRecord): Promise<T> | T;
}

/** Runs a program over a tape: decisions are made anew and compared, all else is handed back. Nothing is written anywhere. */
export class ReplayRunner implements StepRunner {
  readonly #tape: RecordedRun;
  readonly #tree: ReplayTree;
  readonly #control = new Cancellation();
  #next = 0;
  #open: string | undefined;
  #over: SluiceError | undefined;
  #found: RecordDifference | undefined;
  #at = 0;

  constructor(tape: RecordedRun, tree: ReplayTree) {
    this.#tape = tape;
    this.#tree = tree;
  }

  /** Undefined when the program came to what is recorded, as far as that goes. */
  async play(): Promise<RecordDifference | undefined> {
    const input: Json = JSON.parse(this.#tape.start.value);
    this.#timed(this.#tape.start);
    try {
      this.#cancelIfShown();
      this.#ended(await this.#tree.program(this, input));
    } catch (thrown) {
      // Where the record of an unfinished run ends, nobody knows what came next.
      if (!this.#atEnd) this.#threw(this.#tape.steps[this.#next - 1]?.stepId ?? "", thrown);
    }
    return this.#found;
  }

  get runId(): string {
    return this.#tape.runId;
  }

  /** Whether all that is recorded was replayed, of a run that came to no end of its own. */
  get #atEnd(): boolean {
    return this.#tape.end === undefined && this.#next >= this.#tape.steps.length;
  }

  get incarnation(): string {
    return this.#tape.start.incarnation;
  }

  get signal(): AbortSignal {
    return this.#control.signal;
  }

  run<T extends Json>(stepId: string, fn: (call: StepCall) => Promise<T> | T, options: StepOptions = {}): Promise<T> {
    const { open, decides } = options;
    return this.#step({
      stepId,
      open,
      hand: async (done) => {
        if (this.#isPast(done)) return this.#taken(done);
        const outcome = this.#outcomeOf(done);
        if (decides === undefined || !decides(outcome)) return this.#taken(done);
        this.#tree.count("decided");
        const events: EventDraft[] = [];
        const value = await this.#decided(stepId, fn, { signal: this.signal, outcome, events });
        const text = jsonText(value, `the value of step ${stepId}`);
        this.#compare(done, differentValue("value", done.value, text));
        this.#compareEvents("event", done, events);
        // As it is on resume: what JSON makes of it.
        return JSON.parse(done.value);
      },
    });
  }

  now(stepId: string): Promise<number> {
    return this.#step({ stepId, open: undefined, hand: (done) => this.#taken<number>(done) });
  }

  sleepUntil(stepId: string): Promise<void> {
    return this.#step({ stepId, open: undefined, hand: () => this.#tree.count("taken") });
  }

  waitForSignal(name: string, { timeoutMs }: WaitOptions = {}): Promise<ReceivedSignal | undefined> {
    const open = timeoutMs === undefined ? undefined : { events: [] };
    const hand = (done: JournalRecord): ReceivedSignal | undefined => {
      const received: ReceivedSignal | null = this.#taken(done);
      return received ?? undefined;
    };
    return this.#step({ stepId: stepIds.wait(name), open, hand });
  }

  takeSignals(stepId: string): Promise<readonly ReceivedSignal[]> {
    return this.#step({ stepId, open: undefined, hand: (done) => this.#taken<readonly ReceivedSignal[]>(done) });
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
        if (announced !== undefined && !this.#isPast(announced))
          this.#compare(announced, differentValue("announced", announced.value, intent));
        if (done === undefined || !this.#isPast(done)) await this.#playChildren(stepId, children);
      },
      hand: (done) => {
        const settled: Readonly<Record<string, SiblingEnd>> = this.#taken(done);
        if (!this.#isPast(done)) this.#compareEvents("event", done, joined(settled));
        return settled;
      },
    });
  }

  emit(): void {
    return;
  }

  heard(): boolean {
    return false;
  }

  #step<T>(step: ReplayedStep<T>): Promise<T> {
    const settling = this.#walk(step);
    // A program that does not look at its step must not bring the process down: `play` tells.
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
      const value = await hand(known.done);
      this.#cancelIfShown();
      return value;
    } finally {
      this.#open = undefined;
    }
  }

  #enter(stepId: string): RecordedStep {
    if (this.#over !== undefined) throw this.#over;
    if (this.#open !== undefined) {
      const message = `run ${this.runId}: step ${stepId} was started while ${this.#open} is open; run side by side with fork()`;
      throw this.#threw(stepId, new Error(message));
    }
    const known = this.#tape.steps[this.#next];
    const { last } = this.#tape;
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
    if (record === undefined || this.#isPast(record)) return;
    if ((open === undefined) !== (recorded === undefined)) {
      const words = (is: boolean): string => (is ? "begins behind a record of its own" : "is recorded when it is done");
      const difference = { path: "$", recorded: words(recorded !== undefined), now: words(open !== undefined) };
      throw this.#differ(record, stepId, { part: "announced", ...difference });
    }
    if (open !== undefined) this.#compareEvents("announced", record, open.events);
  }

  async #decided<T>(
    stepId: string,
    fn: (call: StepCall) => Promise<T> | T,
    { signal, outcome, events }: { signal: AbortSignal; outcome: RecordedOutcome; events: EventDraft[] },
  ): Promise<T> {
    const call: StepCall = {
      signal,
      recorded: outcome,
      event: (draft) => void events.push(draft),
      signals: () => [],
      hold: ignore,
    };
    try {
      return await fn(call);
    } catch (thrown) {
      throw this.#threw(stepId, thrown);
    }
  }

  /** One after the other, since nothing waits; of those that differ, the one whose record was written first is told. */
  async #playChildren(stepId: string, children: readonly ChildRun[]): Promise<void> {
    let first: RecordDifference | undefined;
    for (const child of children) {
      const tape = this.#tree.tapeOf(childRunId(this.runId, stepId, child.key));
      if (tape === undefined || tape.own > tape.last.seq) continue;
      const runner = new ReplayRunner(tape, this.#tree);
      const found = runner.#given(child) ?? (await runner.play());
      if (found !== undefined && (first === undefined || found.at < first.at)) first = found;
    }
    if (first !== undefined) throw this.#stop(first);
  }

  /** Whether a child would have been started otherwise. */
  #given({ key, input, events }: ChildRun): RecordDifference | undefined {
    const { start } = this.#tape;
    const part =
      differentValue("input", start.value, jsonText(input, `the input of ${key}`)) ??
      differentEvents("event", { runId: this.runId, record: start }, events);
    return part === undefined ? undefined : this.#differenceAt(start, start.stepId, part);
  }

  #ended({ status, value, events }: ProgramEnd): void {
    const { steps, end } = this.#tape;
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
    const known = this.#tape.steps[Math.max(0, this.#next - 1)];
    const record = known?.done ?? known?.open ?? this.#tape.last;
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
   * Ends the replay of this run: at a difference, or where its record ends. Every further step rejects, and what the program makes
   * of that is no end of the run: only the first counts.
   */
  #stop(found?: RecordDifference): SluiceError {
    if (this.#over !== undefined) return this.#over;
    this.#found = found;
    this.#over = new SluiceError("Host", "run_stopped", `the replay of run ${this.runId} ends here`);
    this.#control.stop(this.#over);
    return this.#over;
  }

  /** What another run decided, perhaps with another pipeline, mode or folder: that one is replayed for it. */
  #isPast({ seq }: JournalRecord): boolean {
    return seq < this.#tape.own;
  }

  #taken<T>(done: JournalRecord): T {
    this.#tree.count("taken");
    return JSON.parse(done.value);
  }

  /** A run that was told to end hears of it where its program showed first that it knew. */
  #cancelIfShown(): void {
    const { steps, end, status, cancelled } = this.#tape;
    const next = steps[this.#next];
    const shown =
      next === undefined
        ? end !== undefined && status !== "unfinished" && this.#tree.showsCancel({ status })
        : next.done !== undefined && this.#tree.showsCancel({ stepId: next.stepId, value: next.done.value });
    if (!shown) return;
    const reason = cancelled ?? "cancelled";
    this.#control.cancel(new SluiceError("Cancellation", "run_cancelled", reason));
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
