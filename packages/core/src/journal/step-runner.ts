import type { Clock } from "../base/clock.ts";
import { SluiceError } from "../base/errors.ts";
import { field, type Json } from "../base/json.ts";
import type { Control } from "./control.ts";
import type { EventDraft } from "./events.ts";
import { checkFork, runFork } from "./fork.ts";
import { type Past, type RecordedStep, readOpened } from "./past.ts";
import { jsonText, recorded } from "./recorded.ts";
import type {
  ChildRun,
  JournalRecord,
  LiveChunk,
  ProgramEnd,
  ReceivedSignal,
  RunEnd,
  Settled,
  StepCall,
  StepOptions,
  StepRunner,
} from "./seam.ts";
import { callStep } from "./step-call.ts";
import type { JournalStore } from "./store.ts";
import { waitFor } from "./waiting.ts";
import { appendRecord, type RunPosition } from "./writer.ts";

/** What a host keeps of one run while it works here. */
export interface RunAtWork {
  readonly store: JournalStore;
  readonly clock: Clock;
  readonly at: RunPosition;
  readonly past: Past;
  readonly control: Control;
  readonly tree: TreeOfRun;
}

/** What a run shares with the whole tree it belongs to. */
export interface TreeOfRun {
  /** Stops every run of the tree here, resumable: one of them cannot go on. */
  stop(thrown: unknown): void;
  /** Calls back when signals may have come. Returns the unsubscriber. */
  onSignal(listener: () => void): () => void;
  emit(chunk: LiveChunk): void;
  heard(): boolean;
  /** Work that goes on after its step; the tree stays owned until it settles. */
  hold(work: Promise<unknown>): void;
  /** Starts a child that was never started, or takes up one that was; `fresh` says that none of this fork was. */
  openChild(parent: RunAtWork, stepId: string, child: ChildRun, fresh: boolean): Promise<ChildTask | EndedChild>;
  /** Ends a child that does not work here, and everything below it, as cancelled, without running their code. */
  closeChild(parent: RunAtWork, stepId: string, child: ChildRun, reason: string): Promise<Settled>;
}
/** One child at work, as its parent sees it. */
export interface ChildTask {
  readonly end: Promise<Settled>;
  cancel(reason: SluiceError): void;
}
export interface EndedChild {
  readonly ended: Settled;
}

/** A step from the moment it is asked for until its promise settles. */
interface OpenStep {
  readonly stepId: string;
  settled?: Promise<unknown>;
}

export interface ProgramRunner {
  readonly steps: StepRunner;
  /**
   * Runs the program to its end. Rejects with the first fault any step met, whatever the program made of it. A run that was
   * cancelled before it had replayed its past has no end of its own: what its code did then cannot follow what is recorded.
   */
  conclude(program: (steps: StepRunner) => Promise<ProgramEnd>): Promise<ProgramEnd | "cancelled in the past">;
}

export function createStepRunner(run: RunAtWork): ProgramRunner {
  const { at, clock, store, past, control, tree } = run;
  const taken = new Map<string, number>();
  const forks = new Set<string>();
  let nextOrdinal = 0;
  let open: OpenStep | undefined;
  let fault: { readonly thrown: unknown } | undefined;
  let over = false;
  let cancelledInPast = false;

  const stopListening = control.onChange(() => {
    if (control.cancelled === undefined || !past.left || fault !== undefined) return;
    cancelledInPast = true;
    fault = { thrown: control.cancelled };
  });
  const misuse = (code: string, message: string): SluiceError =>
    new SluiceError("Host", code, `run ${at.runId}: ${message}`);

  /** Numbers a step and finds what is known of it, before anything else can happen. */
  const enter = (asked: OpenStep): { readonly ordinal: number; readonly known: RecordedStep | undefined } => {
    if (fault !== undefined) throw fault.thrown;
    if (over) throw misuse("run_over", "a step was asked for after the program had ended");
    if (control.stopped !== undefined) throw control.stopped;
    if (open !== undefined) {
      const message = `step ${asked.stepId} was started while ${open.stepId} is open; run side by side with fork()`;
      throw misuse("step_overlap", message);
    }
    if (asked.stepId === "" || !asked.stepId.isWellFormed()) {
      throw misuse("step_id_invalid", `"${asked.stepId}" is no id for a step`);
    }
    open = asked;
    const ordinal = nextOrdinal;
    nextOrdinal += 1;
    return { ordinal, known: past.take(ordinal, asked.stepId) };
  };

  /** The way of every step. What it rejects with is the run's end here: nothing after it could be replayed. */
  const step = <T>(stepId: string, replay: Replay<T>, work: Work<T>): Promise<T> => {
    const asked: OpenStep = { stepId };
    const settled = walk(asked, replay, work);
    // A program that does not look at its step must not bring the process down; `conclude` tells.
    settled.catch(ignore);
    asked.settled = settled;
    return settled;
  };

  const walk = async <T>(asked: OpenStep, replay: Replay<T>, work: Work<T>): Promise<T> => {
    try {
      const { ordinal, known } = enter(asked);
      if (known?.done === undefined) return await work(ordinal, known?.open);
      const value = replay(known.done, known);
      // A replayed step is open for a moment too: what overlaps on the first run must not pass on the second.
      return await Promise.resolve(value);
    } catch (thrown) {
      fault ??= { thrown };
      throw thrown;
    } finally {
      if (open === asked) open = undefined;
    }
  };

  /** Commits a step's open record. Rejects when the run was told to stop between the record and the effect. */
  const openRecord = async (
    ordinal: number,
    stepId: string,
    { events, intent }: NonNullable<StepOptions["open"]>,
  ): Promise<NonNullable<StepCall["opened"]>> => {
    const value = intent === undefined ? "" : jsonText(intent, `the intent of step ${stepId}`);
    await appendRecord(store, at, { ordinal, stepId, phase: "open", value, events }, clock);
    if (control.stopped !== undefined) throw control.stopped;
    return { incarnation: at.incarnation, ...(intent === undefined ? {} : { intent }) };
  };
  const doneRecord = (ordinal: number, stepId: string, value: string, events: readonly EventDraft[] = NO_EVENTS) =>
    appendRecord(store, at, { ordinal, stepId, phase: "done", value, events }, clock);

  const takenSoFar = (name: string): number => taken.get(name) ?? 0;
  const take = (name: string, count: number): void => {
    taken.set(name, takenSoFar(name) + count);
  };

  const steps: StepRunner = {
    runId: at.runId,
    incarnation: at.incarnation,
    signal: control.signal,

    run: <T extends Json>(stepId: string, fn: (call: StepCall) => Promise<T> | T, options: StepOptions = {}) =>
      step<T>(
        stepId,
        (done) => JSON.parse(done.value),
        async (ordinal, earlier) => {
          const { open, graceMs = 0 } = options;
          const opened =
            earlier !== undefined ? readOpened(earlier) : open && (await openRecord(ordinal, stepId, open));
          const { value, events } = await callStep(run, fn, graceMs, opened);
          const kept = recorded(value, `the value of step ${stepId}`);
          await doneRecord(ordinal, stepId, kept.text, events);
          return kept.value;
        },
      ),

    now: (stepId) => steps.run(stepId, () => clock.now()),

    sleepUntil: (stepId, epochMs) =>
      step(
        stepId,
        () => undefined,
        async (ordinal) => {
          await waitFor(run, { until: epochMs });
          await doneRecord(ordinal, stepId, "null");
        },
      ),

    waitForSignal: (name, { timeoutMs, clean } = {}) => {
      const stepId = `wait/${name}`;
      return step<ReceivedSignal | undefined>(
        stepId,
        (done) => {
          const received: ReceivedSignal | null = JSON.parse(done.value);
          if (received !== null) take(name, 1);
          return received ?? undefined;
        },
        async (ordinal, earlier) => {
          let until: number | undefined;
          if (timeoutMs !== undefined) {
            const intent: Json = { until: clock.now() + timeoutMs };
            const opened =
              earlier === undefined ? openRecord(ordinal, stepId, { events: NO_EVENTS, intent }) : readOpened(earlier);
            until = untilOf(await opened);
          }
          const arrived = async (): Promise<ReceivedSignal | undefined> =>
            (await store.signals(at.runId, name))[takenSoFar(name)];
          let found: ReceivedSignal | undefined;
          const look = async (): Promise<boolean> => {
            found ??= await arrived();
            return found !== undefined;
          };
          await waitFor(run, { arrived: look, ...(until === undefined ? {} : { until }) });
          // Decided here: a look that is still under way must not change what is recorded.
          const received =
            found === undefined || clean === undefined ? found : { ...found, payload: clean(found.payload) };
          if (received !== undefined) take(name, 1);
          await doneRecord(ordinal, stepId, JSON.stringify(received ?? null));
          return received;
        },
      );
    },

    takeSignals: (stepId, name) =>
      step<readonly ReceivedSignal[]>(
        stepId,
        (done) => {
          const received: readonly ReceivedSignal[] = JSON.parse(done.value);
          take(name, received.length);
          return received;
        },
        async (ordinal) => {
          const received = (await store.signals(at.runId, name)).slice(takenSoFar(name));
          take(name, received.length);
          await doneRecord(ordinal, stepId, JSON.stringify(received));
          return received;
        },
      ),

    fork: (stepId, children, options) => {
      const keys: Json = { fork: children.map((child) => child.key) };
      const check = (known: JournalRecord | undefined): void => {
        if (forks.has(stepId))
          throw misuse("fork_repeated", `fork ${stepId} was asked for twice; its children would be the same`);
        forks.add(stepId);
        checkFork(at.runId, stepId, children, known);
      };
      return step<Readonly<Record<string, Settled>>>(
        stepId,
        (done, known) => {
          check(known.open);
          return JSON.parse(done.value);
        },
        async (ordinal, earlier) => {
          check(earlier);
          if (earlier === undefined) await openRecord(ordinal, stepId, { events: options.open.events, intent: keys });
          const { text, value } = recorded(
            await runFork(run, stepId, children, options, earlier === undefined),
            `the result of fork ${stepId}`,
          );
          await doneRecord(ordinal, stepId, text, options.joined(value));
          return value;
        },
      );
    },

    emit: (channel, chunk) => tree.emit({ runId: at.runId, channel, chunk }),
    heard: tree.heard,
  };

  return {
    steps,
    async conclude(program) {
      let ended: ProgramEnd | undefined;
      try {
        ended = await program(steps);
        if (!END_STATUSES.has(ended.status))
          throw misuse("end_invalid", `the program ended as ${String(ended.status)}, which is no status`);
        if (open !== undefined)
          throw misuse("step_left_open", `the program ended while step ${open.stepId} was open; await every step`);
        // What the program made of a signal to stop is not its end.
        if (control.stopped !== undefined) throw control.stopped;
        past.finish();
      } catch (thrown) {
        fault ??= { thrown };
      }
      stopListening();
      if (fault === undefined && ended !== undefined) {
        over = true;
        return ended;
      }
      const thrown = fault?.thrown;
      if (cancelledInPast) {
        if (control.stopped !== undefined) throw control.stopped;
        return "cancelled in the past";
      }
      if (open !== undefined) {
        tree.stop(thrown);
        await Promise.allSettled([open.settled]);
      }
      throw thrown;
    },
  };
}

type Replay<T> = (done: JournalRecord, known: RecordedStep) => T;
/** `earlier` is the open record that an earlier process left. */
type Work<T> = (ordinal: number, earlier: JournalRecord | undefined) => Promise<T>;

function ignore(): void {
  return;
}

const END_STATUSES: ReadonlySet<string> = new Set<RunEnd["status"]>(["completed", "failed", "cancelled"]);

const NO_EVENTS: readonly EventDraft[] = [];

function untilOf(opened: NonNullable<StepCall["opened"]>): number | undefined {
  const until = field(opened.intent, "until");
  return typeof until === "number" ? until : undefined;
}
