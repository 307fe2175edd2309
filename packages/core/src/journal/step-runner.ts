import { setMaxListeners } from "node:events";
import type { Clock } from "../base/clock.ts";
import { SluiceError } from "../base/errors.ts";
import { field, type Json } from "../base/json.ts";
import type { EventDraft } from "./events.ts";
import { type ForkHost, runFork } from "./fork.ts";
import type { JournalRecord, LiveChunk, ReceivedSignal, StepCall, StepOptions, StepRunner } from "./seam.ts";
import type { JournalStore } from "./store.ts";
import { appendRecord, type RunPosition } from "./writer.ts";

/** What a host keeps of one run while it works here. */
export interface RunAtWork {
  readonly store: JournalStore;
  readonly clock: Clock;
  readonly at: RunPosition;
  /** Records of earlier processes, in order; emptied as they are replayed. */
  readonly past: readonly JournalRecord[];
  /** Aborted by cancel, once. */
  readonly cancelled: AbortController;
  /** Aborted when the run has to stop here, resumable. */
  readonly stopped: AbortController;
  /** Calls back when signals may have come. Returns the unsubscriber. */
  onSignal(listener: () => void): () => void;
  emit(chunk: LiveChunk): void;
  /** Work that goes on after its step; the run stays owned until it settles. */
  hold(work: Promise<unknown>): void;
  readonly forks: ForkHost;
}

/** One step's part of the past. */
interface Replayed {
  readonly stepId: string;
  open?: JournalRecord;
  done?: JournalRecord;
}

export function createStepRunner(run: RunAtWork): { readonly steps: StepRunner; dispose(): void } {
  const { at, clock, store } = run;
  const past = indexPast(run.past);
  const taken = new Map<string, number>();
  let nextOrdinal = 0;
  let openStep: string | undefined;

  // The program sees one signal for both ways a run may have to end its work here. The step at work hears of them through
  // these two listeners too: listeners of its own would cost more than the step.
  const over = new AbortController();
  setMaxListeners(0, over.signal);
  let atWork: StepAtWork | undefined;
  const onStop = (): void => {
    over.abort(stoppedError(run));
    atWork?.stop();
  };
  const onCancel = (): void => {
    over.abort(run.cancelled.signal.reason);
    atWork?.cancel();
  };
  run.stopped.signal.addEventListener("abort", onStop, { once: true });
  run.cancelled.signal.addEventListener("abort", onCancel, { once: true });
  if (run.stopped.signal.aborted) onStop();
  else if (run.cancelled.signal.aborted) onCancel();

  /** Numbers a step and finds what is known of it. One step at a time: a second one is a mistake in the program. */
  const enter = (stepId: string): { ordinal: number; known: Replayed | undefined } => {
    if (run.stopped.signal.aborted) throw stoppedError(run);
    if (openStep !== undefined) {
      throw new SluiceError("Host", "step_overlap", `step ${stepId} was started while ${openStep} is open; run side by side with fork()`);
    }
    const ordinal = nextOrdinal;
    nextOrdinal += 1;
    const known = past.get(ordinal);
    past.delete(ordinal);
    if (known !== undefined && known.stepId !== stepId) {
      throw new SluiceError(
        "Host",
        "journal_mismatch",
        `run ${at.runId}: step ${ordinal} is recorded as ${known.stepId}, but the program asked for ${stepId}; the pipeline or Sluice changed since the run started`,
        { detail: { ordinal, recorded: known.stepId, asked: stepId } },
      );
    }
    openStep = stepId;
    return { ordinal, known };
  };

  const commit = (ordinal: number, stepId: string, phase: "open" | "done", value: string, events: readonly EventDraft[]): Promise<void> =>
    appendRecord(store, at, { ordinal, stepId, phase, value, events }, clock);

  const openRecord = async (ordinal: number, stepId: string, open: NonNullable<StepOptions["open"]>): Promise<StepCall["opened"]> => {
    await commit(ordinal, stepId, "open", open.intent === undefined ? "" : JSON.stringify(open.intent), open.events);
    return { incarnation: at.incarnation, ...(open.intent === undefined ? {} : { intent: open.intent }) };
  };

  const takenSoFar = (name: string): number => taken.get(name) ?? 0;

  const runner: StepRunner = {
    runId: at.runId,
    incarnation: at.incarnation,
    signal: over.signal,

    async run<T extends Json>(stepId: string, fn: (call: StepCall) => Promise<T> | T, options: StepOptions = {}): Promise<T> {
      const { ordinal, known } = enter(stepId);
      try {
        if (known?.done !== undefined) return JSON.parse(known.done.value);
        const opened =
          known?.open !== undefined ? readOpened(known.open) : options.open === undefined ? undefined : await openRecord(ordinal, stepId, options.open);
        const step = createStepAtWork(run, options.graceMs ?? 0, opened);
        atWork = step;
        const value = await step.run(fn);
        atWork = undefined;
        await commit(ordinal, stepId, "done", JSON.stringify(value), step.events);
        return value;
      } finally {
        atWork = undefined;
        openStep = undefined;
      }
    },

    now: (stepId) => runner.run(stepId, () => clock.now()),

    async sleepUntil(stepId, epochMs) {
      const { ordinal, known } = enter(stepId);
      try {
        if (known?.done !== undefined) return;
        await waitFor(run, epochMs, () => undefined);
        await commit(ordinal, stepId, "done", "null", []);
      } finally {
        openStep = undefined;
      }
    },

    async waitForSignal(name, options = {}) {
      const stepId = `wait/${name}`;
      const { ordinal, known } = enter(stepId);
      try {
        if (known?.done !== undefined) {
          const value: ReceivedSignal | null = JSON.parse(known.done.value);
          if (value !== null) taken.set(name, takenSoFar(name) + 1);
          return value ?? undefined;
        }
        let until: number | undefined;
        if (options.timeoutMs !== undefined) {
          const intent: Json = { until: clock.now() + options.timeoutMs };
          const opened = known?.open !== undefined ? readOpened(known.open) : await openRecord(ordinal, stepId, { events: [], intent });
          until = untilOf(opened?.intent);
        }
        let arrived: ReceivedSignal | undefined;
        const look = async (): Promise<ReceivedSignal | undefined> => (await store.signals(at.runId, name))[takenSoFar(name)];
        await waitFor(run, until, async () => {
          arrived ??= await look();
          return arrived;
        });
        if (arrived !== undefined) taken.set(name, takenSoFar(name) + 1);
        await commit(ordinal, stepId, "done", JSON.stringify(arrived ?? null), []);
        return arrived;
      } finally {
        openStep = undefined;
      }
    },

    async takeSignals(stepId, name) {
      const arrived = await runner.run(stepId, async (): Promise<Json> => {
        const all = await store.signals(at.runId, name);
        return all.slice(takenSoFar(name)).map((signal) => ({ ...signal }));
      });
      const signals = readSignals(arrived);
      taken.set(name, takenSoFar(name) + signals.length);
      return signals;
    },

    async fork(stepId, children, options) {
      const { ordinal, known } = enter(stepId);
      try {
        if (known?.done !== undefined) return JSON.parse(known.done.value);
        const fresh = known?.open === undefined;
        if (fresh) await openRecord(ordinal, stepId, { events: options.open.events, intent: children.map((child) => child.key) });
        const settled = await runFork(run, stepId, children, options, fresh);
        await commit(ordinal, stepId, "done", JSON.stringify(settled), options.joined(settled));
        return settled;
      } finally {
        openStep = undefined;
      }
    },

    emit(channel, chunk) {
      run.emit({ runId: at.runId, channel, chunk });
    },
  };
  return {
    steps: runner,
    dispose: () => {
      run.stopped.signal.removeEventListener("abort", onStop);
      run.cancelled.signal.removeEventListener("abort", onCancel);
    },
  };
}

function indexPast(records: readonly JournalRecord[]): Map<number, Replayed> {
  const past = new Map<number, Replayed>();
  for (const record of records) {
    if (record.phase === "life") continue;
    const step = past.get(record.ordinal) ?? { stepId: record.stepId };
    if (record.phase === "open") step.open = record;
    else step.done = record;
    past.set(record.ordinal, step);
  }
  return past;
}

function readOpened(record: JournalRecord): NonNullable<StepCall["opened"]> {
  return { incarnation: record.incarnation, ...(record.value === "" ? {} : { intent: JSON.parse(record.value) }) };
}

function untilOf(intent: Json | undefined): number | undefined {
  const until = field(intent, "until");
  return typeof until === "number" ? until : undefined;
}

function readSignals(value: Json): readonly ReceivedSignal[] {
  return JSON.parse(JSON.stringify(value));
}

/** What every step rejects with once the run has to stop here; the program lets it pass. */
export function stoppedError(run: Pick<RunAtWork, "stopped" | "at">): SluiceError {
  const reason: unknown = run.stopped.signal.reason;
  if (reason instanceof SluiceError) return reason;
  return new SluiceError("Host", "run_stopped", `run ${run.at.runId} was stopped here; it can be resumed`);
}

/** One step's function while it runs. */
interface StepAtWork {
  readonly events: readonly EventDraft[];
  run<T>(fn: (call: StepCall) => Promise<T> | T): Promise<T>;
  /** The run has to stop here: after the grace the signal aborts and the step is given up, unrecorded. */
  stop(): void;
  cancel(): void;
}

function createStepAtWork(run: RunAtWork, graceMs: number, opened: StepCall["opened"]): StepAtWork {
  const events: EventDraft[] = [];
  // Made when somebody asks for it: most steps never do, and a controller costs more than all else here.
  let controller: AbortController | undefined;
  let giveUp: ((error: SluiceError) => void) | undefined;
  let disarm: (() => void) | undefined;
  const call: StepCall = {
    get signal() {
      if (controller === undefined) {
        controller = new AbortController();
        setMaxListeners(0, controller.signal);
        if (run.cancelled.signal.aborted) controller.abort(run.cancelled.signal.reason);
      }
      return controller.signal;
    },
    ...(opened === undefined ? {} : { opened }),
    event: (draft) => {
      events.push(draft);
    },
    hold: run.hold,
  };
  return {
    events,
    async run(fn) {
      const work = fn(call);
      if (!(work instanceof Promise)) return work;
      try {
        return await new Promise((resolve, reject) => {
          giveUp = reject;
          work.then(resolve, reject);
        });
      } finally {
        giveUp = undefined;
        disarm?.();
      }
    },
    stop: () => {
      const end = (): void => {
        const error = stoppedError(run);
        controller?.abort(error);
        giveUp?.(error);
      };
      if (graceMs > 0) disarm = run.clock.after(graceMs, end);
      else end();
    },
    cancel: () => controller?.abort(run.cancelled.signal.reason),
  };
}

/** Waits until `ready` returns something, the time has come, or the run is cancelled. Rejects when the run has to stop. */
async function waitFor(run: RunAtWork, until: number | undefined, ready: () => unknown): Promise<void> {
  if (run.cancelled.signal.aborted || (await ready()) !== undefined) return;
  await new Promise<void>((resolve, reject) => {
    let over = false;
    const cleanups: (() => void)[] = [];
    const end = (settle: () => void): void => {
      if (over) return;
      over = true;
      for (const cleanup of cleanups) cleanup();
      settle();
    };
    const onCancel = (): void => end(resolve);
    const onStop = (): void => end(() => reject(stoppedError(run)));
    const check = async (): Promise<void> => {
      try {
        if ((await ready()) !== undefined) end(resolve);
      } catch (thrown) {
        end(() => reject(thrown));
      }
    };
    run.cancelled.signal.addEventListener("abort", onCancel, { once: true });
    run.stopped.signal.addEventListener("abort", onStop, { once: true });
    cleanups.push(
      () => run.cancelled.signal.removeEventListener("abort", onCancel),
      () => run.stopped.signal.removeEventListener("abort", onStop),
      run.onSignal(() => void check()),
    );
    if (until !== undefined) cleanups.push(run.clock.after(until - run.clock.now(), () => end(resolve)));
    if (run.cancelled.signal.aborted) onCancel();
    else if (run.stopped.signal.aborted) onStop();
    else void check();
  });
}
