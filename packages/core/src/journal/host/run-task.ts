import { isSluiceError, SluiceError } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import { appendRecord, type RunPosition } from "../record/append.ts";
import { LIFE, NO_ORDINAL } from "../record/lifecycle.ts";
import type { LiveChunk, RunEnd, RunTask, SuspendReason } from "../seam.ts";
import { type CancelRequest, closeOwnerless } from "./cancel-orphans.ts";
import type { Past } from "./recorded-steps.ts";
import type { HostServices, Tree } from "./run-tree.ts";
import { SUSPENDED } from "./step-call.ts";
import { type ChangeListener, type Changes, type Looker, OneAtATime } from "./store-changes.ts";

/** A host as its tasks see it. */
export interface TaskHost extends HostServices {
  readonly changes: Changes;
  readonly incarnation: () => string;
  /** The run does not belong to this host any more. */
  readonly onReleased: (runId: string) => void;
}
type TaskEnd = Awaited<RunTask["settled"]>;
interface Fault {
  readonly fault: unknown;
}

/**
 * How long the end of a task waits for code that was told to stop; whatever still works then keeps the lock alone. Short,
 * since a cancel has to return within 100 ms, and the run may have given a tool half of that already.
 */
const MOMENT_MS = 40;

/** A root run at work in this host: works on it until it ends, is suspended or cannot go on here, and then gives it up. */
export class HostTask implements RunTask, ChangeListener, Looker {
  readonly settled: Promise<TaskEnd>;
  readonly #host: TaskHost;
  readonly #tree: Tree;
  readonly #at: RunPosition;
  readonly #looking = new OneAtATime(this);
  #suspension: { readonly reason: SuspendReason; readonly error: SluiceError } | undefined;
  #over = false;

  constructor(host: TaskHost, tree: Tree, at: RunPosition, past: Past, input: Json) {
    this.#host = host;
    this.#tree = tree;
    this.#at = at;
    this.settled = this.#work(past, input);
  }

  get runId(): string {
    return this.#tree.rootId;
  }

  get waits(): boolean {
    return false;
  }

  async suspend(reason: SuspendReason): Promise<void> {
    if (this.#suspension === undefined) {
      const message = `run ${this.runId} was suspended here (${reason}); it can be resumed`;
      this.#suspension = { reason, error: new SluiceError("Host", SUSPENDED, message) };
      this.#tree.stop(this.#suspension.error);
    }
    await this.settled;
  }

  cancel(request: CancelRequest): void {
    this.#tree.cancel(request);
  }

  onLive(listener: (chunk: LiveChunk) => void): () => void {
    return this.#tree.onLive(listener);
  }

  /** The store changed: signals may have come, others may have asked for the run's end or taken it. */
  storeChanged(): void {
    this.#tree.signalled();
    this.#looking.ask();
  }

  #work(past: Past, input: Json): Promise<TaskEnd> {
    const failed = async (thrown: unknown): Promise<TaskEnd> => this.#finish(await this.#stopped(thrown));
    try {
      this.#host.changes.add(this);
      // What was asked for before this was listening.
      this.#looking.ask();
    } catch (thrown) {
      return failed(thrown);
    }
    const work = this.#tree.work(this.#at, past, input);
    return work.then(({ status, value }) => this.#finish({ end: { status, value } }), failed);
  }

  async #finish(outcome: TaskEnd | Fault): Promise<TaskEnd> {
    // Whoever never looks at a run that cannot go on must not bring the process down; whoever does still sees the rejection.
    this.settled.catch(ignore);
    this.#host.changes.drop(this);
    this.#over = true;
    const closed = await this.#letGo(outcome);
    if ("fault" in outcome) throw outcome.fault;
    return closed === undefined ? outcome : { end: closed };
  }

  /** What a run that stopped here comes to: suspended, when it was told to be and that could be recorded. */
  async #stopped(thrown: unknown): Promise<TaskEnd | Fault> {
    if (this.#suspension === undefined || thrown !== this.#suspension.error) return { fault: thrown };
    const { store, clock } = this.#host;
    const { reason } = this.#suspension;
    const record = { ordinal: NO_ORDINAL, stepId: LIFE.suspend, phase: "life" as const, value: "" };
    try {
      await appendRecord(store, this.#at, { ...record, events: [{ type: "run.suspended", data: { reason } }] }, clock);
      return { suspended: reason };
    } catch (fault) {
      return { fault };
    }
  }

  /** What others did to the run: asked for its end, or took it. */
  async look(): Promise<void> {
    const { store } = this.#host;
    try {
      const row = this.#over ? undefined : await store.run(this.runId);
      if (this.#over) return;
      if (row?.cancel !== undefined) this.#tree.cancel(row.cancel);
      if (row?.owner?.id !== store.ownerId) {
        const message = `run ${this.runId} was taken over by another process`;
        this.#tree.stop(new SluiceError("Host", "ownership_lost", message));
      }
    } catch (thrown) {
      // A store that cannot be read any more cannot hold this run's next record either.
      this.#tree.stop(thrown);
    }
  }

  async #letGo(outcome: TaskEnd | Fault): Promise<RunEnd | undefined> {
    const held = this.#tree.held();
    if (held === undefined) return await this.#release(outcome);
    let disarm: (() => void) | undefined;
    const moment = new Promise<undefined>((resolve) => {
      disarm = this.#host.clock.after(MOMENT_MS, () => resolve(undefined));
    });
    const released = held.then(() => {
      disarm?.();
      return this.#release(outcome);
    });
    return await Promise.race([released, moment]);
  }

  /** Gives the run up. Whoever asked for its end meanwhile was told that its owner would see to it. */
  async #release(outcome: TaskEnd | Fault): Promise<RunEnd | undefined> {
    const { store, clock, report, incarnation, onReleased } = this.#host;
    const rootId = this.runId;
    try {
      await store.release(rootId);
      if ("end" in outcome || (await store.run(rootId))?.cancel === undefined) return undefined;
      return await closeOwnerless({ store, clock, rootId, incarnation });
    } catch (thrown) {
      // The run is what its journal says; the lock goes with the process, and is gone when the store was closed. Of a disk
      // that fails the run's own fault tells.
      if (!("fault" in outcome) && !isSluiceError(thrown, "store_closed")) report(thrown);
      return undefined;
    } finally {
      onReleased(rootId);
    }
  }
}

function ignore(): void {
  return;
}
