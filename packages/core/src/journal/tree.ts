import type { Clock } from "../base/clock.ts";
import { isSluiceError, messageOf, SluiceError } from "../base/errors.ts";
import type { Json } from "../base/json.ts";
import type { Report } from "./changes.ts";
import { type Control, createControl } from "./control.ts";
import { childRow, childRunId } from "./fork.ts";
import { LIFE, NO_ORDINAL } from "./life.ts";
import { NO_PAST, type Past, type TakenUp, takeUp } from "./past.ts";
import { recorded } from "./recorded.ts";
import type { ChildRun, LiveChunk, NewRun, RunEnd, RunProgram, Settled } from "./seam.ts";
import { createStepRunner, type EndedChild, type RunAtWork, type TreeOfRun } from "./step-runner.ts";
import type { JournalStore } from "./store.ts";
import { type CancelRequest, closeAlone, closeCancelled, recordCancel } from "./takeover.ts";
import { appendRecord, draftCommit, type RunPosition, startOf } from "./writer.ts";

/** A run of this process with everything below it: owned, stopped and released as one. */
export interface Tree extends TreeOfRun {
  readonly rootId: string;
  /** The root's; its children have their own, which it reaches through their forks. */
  readonly control: Control;
  /** Runs the root's program to its end and writes the end down. */
  work(at: RunPosition, past: Past, input: Json): Promise<RunEnd>;
  /** Ends the root through its own code, and notes who wants that. */
  cancel(request: CancelRequest): void;
  /** Lets every wait for a signal look again. */
  signalled(): void;
  onLive(listener: (chunk: LiveChunk) => void): () => void;
  /** Work that was given up and goes on; undefined when there is none. */
  held(): Promise<void> | undefined;
}

export interface TreeOptions {
  readonly store: JournalStore;
  readonly clock: Clock;
  readonly report: Report;
  readonly rootId: string;
  readonly program: RunProgram;
}

/** A child that is to work here. */
interface OpenedChild extends Pick<TakenUp, "past" | "input" | "forked"> {
  readonly at: RunPosition;
}

/** The record every journal begins with. */
export function startRecord(inputText: string, events: NewRun["events"]) {
  return { ordinal: NO_ORDINAL, stepId: LIFE.start, phase: "life" as const, value: inputText, events };
}

export function createTree({ store, clock, report, rootId, program }: TreeOptions): Tree {
  const root = createControl();
  const controls = new Set<Control>();
  const onSignal = new Set<() => void>();
  const onLive = new Set<{ readonly tell: (chunk: LiveChunk) => void }>();
  const holds = new Set<Promise<unknown>>();
  let stopped: SluiceError | undefined;
  let cancelRequest: CancelRequest | undefined;

  const noteCancel = async (at: RunPosition): Promise<void> => {
    if (at.runId === rootId && cancelRequest !== undefined) await recordCancel({ store, clock }, at, cancelRequest);
  };
  /** Ends a run and everything below it as cancelled, without running their code. */
  const close = async (at: RunPosition, reason: string): Promise<Settled> => {
    await noteCancel(at);
    return await closeCancelled({ store, clock, rootId }, at, reason);
  };

  /** Runs a program to its end; its control is told of a stop for as long as it works. */
  const runProgram = async (control: Control, at: RunPosition, past: Past, input: Json): Promise<Settled> => {
    controls.add(control);
    if (stopped !== undefined) control.stop(stopped);
    try {
      const runner = createStepRunner({ store, clock, at, past, control, tree });
      const ended = await runner.conclude((steps) => program(steps, input));
      if (ended === "cancelled in the past") return await close(at, control.cancelled?.message ?? ended);
      const { text, value: end } = recorded<RunEnd>(
        { status: ended.status, value: ended.value },
        `the end of ${at.runId}`,
      );
      await noteCancel(at);
      const record = {
        ordinal: NO_ORDINAL,
        stepId: LIFE.end,
        phase: "life" as const,
        value: text,
        events: ended.events,
      };
      await appendRecord(store, at, { ...record, end }, clock);
      return { ...end, records: at.seq, head: at.head };
    } finally {
      controls.delete(control);
    }
  };

  const open = async (
    parent: RunAtWork,
    childId: string,
    child: ChildRun,
    fresh: boolean,
  ): Promise<OpenedChild | EndedChild> => {
    const { epoch, incarnation } = parent.at;
    const row = fresh ? undefined : await childRow(parent, childId);
    if (row === undefined) {
      const input = recorded(child.input, `the input of ${childId}`);
      const start = startOf(childId, incarnation);
      const commit = draftCommit(start, startRecord(input.text, child.events), clock);
      const seed = { runId: childId, rootId, parentId: parent.at.runId, createdAt: clock.now(), input: input.value };
      await store.create(seed, { ...commit, epoch });
      const at: RunPosition = { ...start, epoch, seq: 1, head: commit.record.hash };
      return { at, past: NO_PAST, input: input.value, forked: false };
    }
    if (row.end !== undefined) return { ended: { ...row.end, records: row.records, head: row.head } };
    const { seq, head, ...taken } = await takeUp(store, row);
    return { at: { runId: childId, epoch, incarnation, seq, head }, ...taken };
  };

  const tree: Tree = {
    rootId,
    control: root,
    async work(at, past, input) {
      const { status, value } = await runProgram(root, at, past, input);
      return { status, value };
    },
    cancel(request) {
      cancelRequest ??= request;
      const { reason, by } = request;
      root.cancel(new SluiceError("Cancellation", "run_cancelled", reason, { detail: { by } }));
    },
    stop(thrown) {
      if (stopped !== undefined) return;
      stopped = stopReason(rootId, thrown);
      for (const control of [...controls]) control.stop(stopped);
    },
    onSignal(listener) {
      onSignal.add(listener);
      return () => onSignal.delete(listener);
    },
    signalled() {
      for (const listener of [...onSignal]) listener();
    },
    emit(chunk) {
      for (const listener of onLive) {
        try {
          listener.tell(chunk);
        } catch (thrown) {
          // Whoever only watches must not be able to break the run.
          onLive.delete(listener);
          report(thrown);
        }
      }
    },
    heard: () => onLive.size > 0,
    onLive(tell) {
      const entry = { tell };
      onLive.add(entry);
      return () => onLive.delete(entry);
    },
    hold(work) {
      const drop = (): void => {
        holds.delete(work);
      };
      holds.add(work);
      work.then(drop, drop);
    },
    held() {
      if (holds.size === 0) return undefined;
      const drain = async (): Promise<void> => {
        // Work that ends may have handed over to other work.
        while (holds.size > 0) await Promise.allSettled([...holds]);
      };
      return drain();
    },
    async openChild(parent, stepId, child, fresh) {
      const opened = await open(parent, childRunId(parent.at.runId, stepId, child.key), child, fresh);
      if ("ended" in opened) return opened;
      const control = createControl();
      const end = runProgram(control, opened.at, opened.past, opened.input);
      return { end, cancel: (reason) => control.cancel(reason) };
    },
    async closeChild(parent, stepId, child, reason) {
      const opened = await open(parent, childRunId(parent.at.runId, stepId, child.key), child, false);
      if ("ended" in opened) return opened.ended;
      const closing = { store, clock, rootId };
      return await (opened.forked ? closeCancelled : closeAlone)(closing, opened.at, reason);
    },
  };
  return tree;
}

/** What every step of a tree rejects with once one of its runs cannot go on. */
function stopReason(rootId: string, thrown: unknown): SluiceError {
  if (isSluiceError(thrown) && thrown.class === "Host") return thrown;
  const message = `run ${rootId} cannot go on here, and can be resumed: ${messageOf(thrown)}`;
  return new SluiceError("Host", "run_faulted", message, { cause: thrown });
}
