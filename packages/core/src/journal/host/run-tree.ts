import type { Clock } from "../../base/clock.ts";
import { isSluiceError, messageOf, SluiceError } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import { appendRecord, draftCommit, type RunPosition, startOf } from "../record/append.ts";
import { childRunId } from "../record/child-ids.ts";
import { recorded } from "../record/json-value.ts";
import { LIFE, NO_ORDINAL } from "../record/lifecycle.ts";
import type { ChildRun, LiveChunk, NewRun, ProgramEnd, RunEnd, RunProgram, Settled } from "../seam.ts";
import type { JournalStore } from "../store/journal-store.ts";
import { type ChildTask, type EndedChild, orStop, type RunAtWork, type TreeOfRun } from "./active-run.ts";
import { type CancelRequest, closeAlone, closeCancelled, recordCancel } from "./cancel-orphans.ts";
import { Control } from "./cancellation.ts";
import { childRow } from "./fork.ts";
import { NO_PAST, type Past, type TakenUp, takeEnd, takeUp } from "./recorded-steps.ts";
import { ProgramRunner } from "./step-runner.ts";
import type { Report } from "./store-changes.ts";

/** What all runs at work in a host share. */
export interface HostServices {
  readonly store: JournalStore;
  readonly clock: Clock;
  readonly report: Report;
}

/** A child that is to work here. */
interface OpenedChild extends Pick<TakenUp, "past" | "input" | "forked"> {
  readonly at: RunPosition;
}

interface LiveListener {
  readonly tell: (chunk: LiveChunk) => void;
}

/** The record every journal begins with. */
export function startRecord(inputText: string, events: NewRun["events"]) {
  return { ordinal: NO_ORDINAL, stepId: LIFE.start, phase: "life" as const, value: inputText, events };
}

/**
 * A run of this process with everything below it: owned, stopped and released as one. Its sets are made when first needed:
 * most runs have nobody to tell, nothing to wait for and nothing to hold.
 */
export class Tree implements TreeOfRun {
  readonly rootId: string;
  readonly #host: HostServices;
  readonly #program: RunProgram;
  readonly #root = new Control();
  /** Of the children at work. The root reaches them through their forks, too. */
  #children: Set<Control> | undefined;
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
  work(at: RunPosition, past: Past, input: Json): Promise<Settled> {
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

  async openChild(parent: RunAtWork, stepId: string, child: ChildRun, fresh: boolean): Promise<ChildTask | EndedChild> {
    const opened = await this.#open(parent, childRunId(parent.at.runId, stepId, child.key), child, fresh);
    if ("ended" in opened) return opened;
    const control = new Control();
    this.#children ??= new Set();
    this.#children.add(control);
    const end = this.#work(control, opened.at, opened.past, opened.input);
    const drop = (): void => void this.#children?.delete(control);
    end.then(drop, drop);
    return { end, cancel: (reason) => control.cancel(reason) };
  }

  async closeChild(parent: RunAtWork, stepId: string, child: ChildRun, reason: string): Promise<Settled> {
    const opened = await this.#open(parent, childRunId(parent.at.runId, stepId, child.key), child, false);
    if ("ended" in opened) return opened.ended;
    const { store, clock } = this.#host;
    const closing = { store, clock, rootId: this.rootId };
    return await (opened.forked ? closeCancelled : closeAlone)(closing, opened.at, reason);
  }

  /** Runs a program to its end. */
  async #work(control: Control, at: RunPosition, past: Past, input: Json): Promise<Settled> {
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
  async #end(at: RunPosition, { status, value, events }: ProgramEnd): Promise<Settled> {
    const { store, clock } = this.#host;
    const { text, value: end } = recorded<RunEnd>({ status, value }, `the end of ${at.runId}`);
    await this.#noteCancel(at);
    const record = { ordinal: NO_ORDINAL, stepId: LIFE.end, phase: "life" as const, value: text, events };
    await orStop(this, () => appendRecord(store, at, { ...record, end }, clock));
    return { ...end, records: at.seq, head: at.head };
  }

  async #open(parent: RunAtWork, childId: string, child: ChildRun, fresh: boolean): Promise<OpenedChild | EndedChild> {
    const { store, clock } = this.#host;
    const { epoch, incarnation } = parent.at;
    const row = fresh ? undefined : await childRow(parent, childId);
    if (row === undefined) {
      const input = recorded(child.input, `the input of ${childId}`);
      const start = startOf(childId, incarnation);
      const commit = draftCommit(start, startRecord(input.text, child.events), clock);
      const ids = { runId: childId, rootId: this.rootId, parentId: parent.at.runId };
      const seed = { ...ids, createdAt: clock.now(), input: input.value };
      await orStop(this, () => store.create(seed, { ...commit, epoch }));
      const at: RunPosition = { ...start, epoch, seq: 1, head: commit.record.hash };
      return { at, past: NO_PAST, input: input.value, forked: false };
    }
    const ended = await takeEnd(store, row);
    if (ended !== undefined) return { ended };
    const { seq, head, ...taken } = await takeUp(store, row);
    return { at: { runId: childId, epoch, incarnation, seq, head }, ...taken };
  }

  async #noteCancel(at: RunPosition): Promise<void> {
    if (at.runId === this.rootId && this.#cancelRequest !== undefined)
      await recordCancel(this.#host, at, this.#cancelRequest);
  }

  /** Ends a run and everything below it as cancelled, without running their code. */
  async #close(at: RunPosition, reason: string): Promise<Settled> {
    const { store, clock } = this.#host;
    await this.#noteCancel(at);
    return await closeCancelled({ store, clock, rootId: this.rootId }, at, reason);
  }
}

/** What every step of a tree rejects with once one of its runs cannot go on. */
function stopReason(rootId: string, thrown: unknown): SluiceError {
  if (isSluiceError(thrown) && thrown.class === "Host") return thrown;
  const message = `run ${rootId} cannot go on here, and can be resumed: ${messageOf(thrown)}`;
  return new SluiceError("Host", "run_faulted", message, { cause: thrown });
}
