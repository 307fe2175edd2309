import { type Clock, systemClock } from "../../base/clock.ts";
import { messageOf, SluiceError } from "../../base/errors.ts";
import { deepFreeze, type Json } from "../../base/json.ts";
import { copyRun } from "../admin/copy-run.ts";
import { pruneRuns } from "../admin/prune.ts";
import {
  appendRecord,
  createIncarnations,
  draftCommit,
  genesisPosition,
  jsonText,
  lifecycleRecord,
  type RunPosition,
} from "../record.ts";
import type { NewRun, ResumeRunOptions, RunEnd, RunHost, RunProgram, RunTask } from "../seam.ts";
import { LIFECYCLE_STEP } from "../step-id.ts";
import type { JournalStore, RunRow } from "../store/journal-store.ts";
import { createMemoryJournals, type MemoryJournalsOptions } from "../store/memory-store.ts";
import {
  followEvents,
  getRun,
  listRuns,
  openRequests,
  readJournal,
  readRecords,
  readTree,
  unknownRun,
} from "../store/read-runs.ts";
import { cancelOrphan, cancelTree } from "./cancel-orphans.ts";
import { loadForResume, NO_RECORDED_STEPS, type ResumeState } from "./recorded-steps.ts";
import { type HostServices, RunTree } from "./run-tree.ts";
import { createChanges, type Report } from "./store-changes.ts";

export interface HostOptions {
  readonly clock?: Clock;
  /** Called with faults that no caller can handle, such as a listener that threw. Default: a process warning. */
  readonly onFault?: (fault: unknown) => void;
}

/** A host over any JournalStore. */
export function createHost(store: JournalStore, options: HostOptions = {}): RunHost {
  const clock = options.clock ?? systemClock;
  const report: Report = options.onFault ?? warn;
  const changes = createChanges(store, report);
  const incarnation = createIncarnations();
  /** Runs that this host owns. */
  const tasks = new Map<string, RunTree>();
  /** Runs that a call here is about to claim, since the store lets an owner claim the same run twice. */
  const claiming = new Set<string>();
  const calls = new Set<Promise<unknown>>();
  let closing: Promise<void> | undefined;

  const onReleased = (runId: string): void => void tasks.delete(runId);
  /** The signals that are being stored. */
  const sending = new Set<Promise<unknown>>();
  const sent = async (): Promise<void> => {
    while (sending.size > 0) await Promise.allSettled([...sending]);
  };
  const services: HostServices = { store, clock, report, changes, incarnation, onReleased, sent };

  /** Runs a call that may claim a run: `close` waits for it and refuses later ones. */
  const beforeClose = async <T>(call: () => Promise<T>): Promise<T> => {
    if (closing !== undefined) throw new SluiceError("Host", "host_closed", "this host is closed; open another one");
    const done = call();
    const drop = (): void => {
      calls.delete(done);
    };
    calls.add(done);
    done.then(drop, drop);
    return await done;
  };
  const isHere = (runId: string): boolean => tasks.has(runId) || claiming.has(runId);
  const take = async <T>(
    runId: string,
    refusal: (runId: string) => SluiceError,
    call: () => Promise<T>,
  ): Promise<T> => {
    if (isHere(runId)) throw refusal(runId);
    claiming.add(runId);
    try {
      return await call();
    } finally {
      claiming.delete(runId);
    }
  };

  /** Creates a run with its first record, owned by this host, and starts it. */
  const create = async ({ runId, input, events, program }: NewRun): Promise<RunTask> => {
    refuseId(runId);
    const inputText = jsonText(input, "the run's input");
    const start = genesisPosition(runId, incarnation());
    const commit = draftCommit(start, lifecycleRecord(LIFECYCLE_STEP.start, events, inputText), clock);
    // A frozen copy of what was recorded, which neither the caller nor the program can change.
    const own: Json = deepFreeze(JSON.parse(inputText));
    const seed = { runId, rootId: runId, createdAt: clock.now(), input: own };
    try {
      const epoch = await store.create(seed, commit);
      const at = { runId, epoch, incarnation: start.incarnation, seq: 1, head: commit.record.hash };
      return begin(at, { recorded: NO_RECORDED_STEPS, input: own }, program);
    } catch (thrown) {
      // The run may exist nevertheless and can then be resumed.
      await releaseAfterError(runId);
      throw thrown;
    }
  };
  /** Claims a run without an owner and continues after its last record. */
  const claimAndResume = async (
    runId: string,
    program: RunProgram,
    { said, read }: ResumeRunOptions,
  ): Promise<RunTask> => {
    const epoch = await store.claim(runId);
    try {
      // Read after the claim, when no other owner can change it.
      const row = refuseEnded(runId, await store.run(runId));
      const resumed = await loadForResume(store, row, read);
      const at: RunPosition = { runId, epoch, incarnation: incarnation(), seq: resumed.seq, head: resumed.head };
      if (row.cancel !== undefined) {
        const end = await cancelTree({ store, clock, rootId: runId }, at, row.cancel);
        await store.release(runId);
        return endedTask(runId, end);
      }
      const events = [{ type: "run.resumed" as const, data: { ...said, incarnation: at.incarnation } }];
      const value = resumed.interruptions === 0 ? "" : String(resumed.interruptions);
      await appendRecord(store, at, lifecycleRecord(LIFECYCLE_STEP.resume, events, value), clock);
      return begin(at, resumed, program);
    } catch (thrown) {
      await releaseAfterError(runId);
      throw thrown;
    }
  };
  const begin = (
    at: RunPosition,
    resumed: Pick<ResumeState, "recorded" | "input"> & Partial<Pick<ResumeState, "interruptions">>,
    program: RunProgram,
  ): RunTask => {
    const task = new RunTree(services, program, at, resumed);
    tasks.set(at.runId, task);
    return task;
  };

  /** Releases a run after an error, which the caller throws; a lock that cannot be released ends with the process. */
  const releaseAfterError = async (runId: string): Promise<void> => {
    try {
      await store.release(runId);
    } catch (thrown) {
      report(thrown);
    }
  };
  const shutDown = async (): Promise<void> => {
    await Promise.allSettled([...calls]);
    await Promise.allSettled([...tasks.values()].map((task) => task.suspend("interrupted", { due: true })));
    try {
      await store.close();
    } finally {
      changes.close();
    }
  };

  return {
    ...(store.folder === undefined ? {} : { folder: store.folder }),

    start: (run) => beforeClose(() => take(run.runId, runExists, () => create(run))),
    copy: (copy) =>
      beforeClose(async () => {
        refuseId(copy.runId);
        const row = await store.run(copy.of);
        if (row === undefined) throw unknownRun(copy.of);
        refuseChild(row, "copy");
        await take(copy.runId, runExists, () => copyRun({ store, clock, incarnation }, copy));
      }),
    resume: (runId, program, options = {}) =>
      beforeClose(async () => {
        refuseEnded(runId, await store.run(runId));
        return await take(runId, ownedHere, () => claimAndResume(runId, program, options));
      }),

    async signal(runId, message) {
      jsonText(message.payload, `the payload of signal ${message.name}`);
      const putting = Promise.resolve(store.putSignal(runId, message, clock.now()));
      sending.add(putting);
      try {
        return await putting;
      } finally {
        sending.delete(putting);
      }
    },

    async cancel(runId, reason, by) {
      const row = await store.run(runId);
      if (row === undefined) return "unknown";
      refuseChild(row, "cancel");
      if (row.end !== undefined) return "finished";
      const at = clock.now();
      const here = tasks.get(runId);
      try {
        // Recorded before the cancel takes effect, also for a run of this host, so that a resume knows of it.
        await store.requestCancel(runId, reason, by, at);
      } finally {
        here?.cancel({ reason, by, at });
      }
      if (here !== undefined) return "requested";
      // Read again after the request: an owner that released the run before has not seen it.
      const now = await store.run(runId);
      const elsewhere = now?.owner?.live === true && now.owner.id !== store.ownerId;
      if (elsewhere || isHere(runId)) return "requested";
      const close = (): Promise<RunEnd | undefined> => cancelOrphan({ store, clock, rootId: runId, incarnation });
      const end = await beforeClose(() => take(runId, ownedHere, close));
      if (end === undefined) return "requested";
      return end.status === "cancelled" ? "cancelled" : "finished";
    },

    async result(runId, { signal } = {}) {
      const waiter = changes.waiter(signal);
      try {
        for (;;) {
          const changed = waiter.next();
          // Ends with the signal, even if the store does not answer.
          const row = await (signal === undefined
            ? store.run(runId)
            : Promise.race([store.run(runId), waiter.aborted]));
          if (signal?.aborted === true) throw cancelledWait(runId);
          if (row === undefined) throw unknownRun(runId);
          if (row.end !== undefined) return row.end;
          await changed;
        }
      } finally {
        waiter.close();
      }
    },

    requests: (runId) => openRequests(store, runId),
    events: (runId, query = {}) => followEvents({ store, clock, changes }, runId, query),
    get: (runId) => getRun(store, runId),
    list: ({ limit } = {}) => listRuns(store, limit),
    due: async (limit, at = clock.now()) => {
      const [runs, next] = [await store.due(at, limit), await store.nextWake(at)];
      return { runs, next };
    },
    prune: (query) => pruneRuns(store, query),
    onChange: (storeChanged) => {
      const listener = { storeChanged };
      changes.watch(listener);
      return () => changes.unwatch(listener);
    },
    records: (runId, from = 0, limit) => readRecords(store, runId, from, limit),
    tree: (runId) => readTree(store, runId),
    journal: (runId) => readJournal(store, runId),
    close: () => (closing ??= shutDown()),
  };
}

function refuseId(runId: string): void {
  if (runId !== "" && !runId.includes("/")) return;
  throw new SluiceError(
    "Validation",
    "run_id_invalid",
    `"${runId}" is not a valid run id: it is empty, or contains a slash, which separates child ids`,
  );
}

function refuseChild({ runId, rootId }: RunRow, verb: string): void {
  if (runId === rootId) return;
  throw new SluiceError("Session", "run_is_child", `${runId} is part of run ${rootId}; ${verb} that one`);
}

function refuseEnded(runId: string, row: RunRow | undefined): RunRow {
  if (row === undefined) throw unknownRun(runId);
  refuseChild(row, "resume");
  if (row.end === undefined) return row;
  throw new SluiceError("Session", "run_finished", `run ${runId} is ${row.end.status}; it cannot be resumed`);
}

function ownedHere(runId: string): SluiceError {
  return new SluiceError("Host", "run_owned", `run ${runId} is already running in this process`, { detail: { runId } });
}

function runExists(runId: string): SluiceError {
  return new SluiceError("Host", "run_exists", `a run ${runId} already exists`, { detail: { runId } });
}

function cancelledWait(runId: string): SluiceError {
  return new SluiceError("Cancellation", "wait_cancelled", `the wait for the end of run ${runId} was cancelled`);
}

/** The task of a run that was cancelled before it could be resumed. */
function endedTask(runId: string, end: RunEnd): RunTask {
  const none = () => () => undefined;
  return { runId, settled: Promise.resolve({ end }), suspend: async () => undefined, onLive: none, onAsleep: none };
}

function warn(fault: unknown): void {
  process.emitWarning(messageOf(fault), "SluiceWarning");
}

/** A host whose journals live in this process and end with it. */
export function memoryHost(options: MemoryJournalsOptions & HostOptions = {}): RunHost {
  return createHost(createMemoryJournals(options).connect(), options);
}
