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
  type RunPosition,
} from "../record/append.ts";
import type { NewRun, ResumeRunOptions, RunEnd, RunHost, RunProgram, RunTask } from "../seam.ts";
import { LIFECYCLE_STEP, NO_ORDINAL } from "../step-id.ts";
import type { JournalStore, RunRow } from "../store/journal-store.ts";
import {
  followEvents,
  getRun,
  listRuns,
  openRequests,
  readJournal,
  readRecords,
  unknownRun,
} from "../store/read-runs.ts";
import { cancelOrphan, cancelTree } from "./cancel-orphans.ts";
import { loadForResume, NO_RECORDED_STEPS, type ResumeState } from "./recorded-steps.ts";
import { HostTask, type RunTaskHost, RunTree, startRecord } from "./run-tree.ts";
import { CoalescedWork, createChanges, type Report } from "./store-changes.ts";

export interface HostOptions {
  readonly clock?: Clock;
  /** Takes a fault that concerns no caller: a listener that threw, a lock that could not be given back. A process warning when omitted. */
  readonly onFault?: (fault: unknown) => void;
}

/** The host over any JournalStore: everything about runs that does not depend on where records are kept. */
export function createHost(store: JournalStore, options: HostOptions = {}): RunHost {
  const clock = options.clock ?? systemClock;
  const report: Report = options.onFault ?? warn;
  const changes = createChanges(store, report);
  const incarnation = createIncarnations();
  /** Runs that belong to this host, until they are given up. */
  const tasks = new Map<string, HostTask>();
  /** Runs that a call here is about to take: the store lets its owner claim again, and would forget the first claim. */
  const taking = new Set<string>();
  const calls = new Set<Promise<unknown>>();
  let closing: Promise<void> | undefined;

  const onReleased = (runId: string): void => void tasks.delete(runId);
  const services: RunTaskHost = { store, clock, report, changes, incarnation, onReleased };

  /** A call that may take a run: `close` waits for it, and none is begun afterwards. */
  const beforeClose = async <T>(call: () => Promise<T>): Promise<T> => {
    if (closing !== undefined) throw new SluiceError("Host", "host_closed", "this host was closed; open another one");
    const done = call();
    const drop = (): void => {
      calls.delete(done);
    };
    calls.add(done);
    done.then(drop, drop);
    return await done;
  };
  const isHere = (runId: string): boolean => tasks.has(runId) || taking.has(runId);
  const take = async <T>(
    runId: string,
    refusal: (runId: string) => SluiceError,
    call: () => Promise<T>,
  ): Promise<T> => {
    if (isHere(runId)) throw refusal(runId);
    taking.add(runId);
    try {
      return await call();
    } finally {
      taking.delete(runId);
    }
  };

  /** Makes a run that is there and ours from its first record on. */
  const create = async ({ runId, input, events, program }: NewRun): Promise<RunTask> => {
    refuseId(runId);
    const inputText = jsonText(input, "the run's input");
    const start = genesisPosition(runId, incarnation());
    const commit = draftCommit(start, startRecord(inputText, events), clock);
    // A copy that nobody can change, neither the caller nor the program: it is what was recorded.
    const own: Json = deepFreeze(JSON.parse(inputText));
    const seed = { runId, rootId: runId, createdAt: clock.now(), input: own };
    try {
      const epoch = await store.create(seed, commit);
      const at = { runId, epoch, incarnation: start.incarnation, seq: 1, head: commit.record.hash };
      return begin(at, { past: NO_RECORDED_STEPS, input: own }, program);
    } catch (thrown) {
      // It may be there all the same: then it waits to be resumed.
      await giveBack(runId);
      throw thrown;
    }
  };
  /** Makes this host the owner of a run that has none, and goes on where its journal ends. */
  const takeOver = async (runId: string, program: RunProgram, { said, read }: ResumeRunOptions): Promise<RunTask> => {
    const epoch = await store.claim(runId);
    try {
      // As it stands now that nobody else can change it.
      const row = refuseEnded(runId, await store.run(runId));
      const taken = await loadForResume(store, row, read);
      const at: RunPosition = { runId, epoch, incarnation: incarnation(), seq: taken.seq, head: taken.head };
      if (row.cancel !== undefined) {
        const end = await cancelTree({ store, clock, rootId: runId }, at, row.cancel);
        await store.release(runId);
        return endedTask(runId, end);
      }
      const events = [{ type: "run.resumed" as const, data: { ...said, incarnation: at.incarnation } }];
      const record = {
        ordinal: NO_ORDINAL,
        stepId: LIFECYCLE_STEP.resume,
        phase: "lifecycle" as const,
        value: "",
        events,
      };
      await appendRecord(store, at, record, clock);
      return begin(at, taken, program);
    } catch (thrown) {
      await giveBack(runId);
      throw thrown;
    }
  };
  const begin = (
    at: RunPosition,
    { past, input }: Pick<ResumeState, "past" | "input">,
    program: RunProgram,
  ): RunTask => {
    const task = new HostTask(services, new RunTree(services, at.runId, program), at, past, input);
    tasks.set(at.runId, task);
    return task;
  };

  /** The first error is the one to tell; a lock that stays goes with the process. */
  const giveBack = async (runId: string): Promise<void> => {
    try {
      await store.release(runId);
    } catch (thrown) {
      report(thrown);
    }
  };
  const shutDown = async (): Promise<void> => {
    await Promise.allSettled([...calls]);
    await Promise.allSettled([...tasks.values()].map((task) => task.suspend("interrupted")));
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
        return await take(runId, ownedHere, () => takeOver(runId, program, options));
      }),

    async signal(runId, message) {
      jsonText(message.payload, `the payload of signal ${message.name}`);
      return await store.putSignal(runId, message, clock.now());
    },

    async cancel(runId, reason, by) {
      const row = await store.run(runId);
      if (row === undefined) return "unknown";
      refuseChild(row, "cancel");
      if (row.end !== undefined) return "finished";
      const at = clock.now();
      const here = tasks.get(runId);
      try {
        // Kept before anybody acts on it, also when the owner is here: what a cancelled run records is never replayed.
        await store.requestCancel(runId, reason, by, at);
      } finally {
        here?.cancel({ reason, by, at });
      }
      if (here !== undefined) return "requested";
      // Looked at again now that the request is there: an owner that gave the run up before has not seen it.
      const now = await store.run(runId);
      const elsewhere = now?.owner?.live === true && now.owner.id !== store.ownerId;
      if (elsewhere || isHere(runId)) return "requested";
      const close = (): Promise<RunEnd | undefined> => cancelOrphan({ store, clock, rootId: runId, incarnation });
      const end = await beforeClose(() => take(runId, ownedHere, close));
      if (end === undefined) return "requested";
      return end.status === "cancelled" ? "cancelled" : "finished";
    },

    async result(runId, { signal } = {}) {
      return await new Promise<RunEnd>((resolve, reject) => {
        const look = async (): Promise<void> => {
          try {
            const row = await store.run(runId);
            if (row === undefined) throw unknownRun(runId);
            const { end } = row;
            if (end !== undefined) stop(() => resolve(end));
          } catch (thrown) {
            stop(() => reject(thrown));
          }
        };
        const checking = new CoalescedWork({ look });
        const onAbort = (): void => stop(() => reject(cancelledWait(runId)));
        const unsubscribe = changes.await(() => checking.ask());
        const stop = (settle: () => void): void => {
          unsubscribe();
          signal?.removeEventListener("abort", onAbort);
          settle();
        };
        signal?.addEventListener("abort", onAbort, { once: true });
        if (signal?.aborted === true) onAbort();
        else checking.ask();
      });
    },

    requests: (runId) => openRequests(store, runId),
    events: (runId, query = {}) => followEvents({ store, clock, changes }, runId, query),
    get: (runId) => getRun(store, runId),
    list: ({ limit } = {}) => listRuns(store, limit),
    prune: (query) => pruneRuns(store, query),
    onChange: changes.watch,
    records: (runId, from = 0, limit) => readRecords(store, runId, from, limit),
    journal: (runId) => readJournal(store, runId),
    close: () => (closing ??= shutDown()),
  };
}

function refuseId(runId: string): void {
  if (runId !== "" && !runId.includes("/")) return;
  throw new SluiceError(
    "Validation",
    "run_id_invalid",
    `"${runId}" is no id for a run: it is empty, or holds a slash, which stands before a child`,
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
  return new SluiceError("Host", "run_owned", `run ${runId} is at work in this process already`, { detail: { runId } });
}

function runExists(runId: string): SluiceError {
  return new SluiceError("Host", "run_exists", `a run ${runId} exists already`, { detail: { runId } });
}

function cancelledWait(runId: string): SluiceError {
  return new SluiceError("Cancellation", "wait_cancelled", `the wait for the end of run ${runId} was cancelled`);
}

/** A run that was cancelled before it could be taken up: there is nothing to watch or to stop. */
function endedTask(runId: string, end: RunEnd): RunTask {
  return { runId, settled: Promise.resolve({ end }), suspend: async () => undefined, onLive: () => () => undefined };
}

function warn(fault: unknown): void {
  process.emitWarning(messageOf(fault), "SluiceWarning");
}
