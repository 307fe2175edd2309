import { messageOf, SluiceError } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import type { StageContext } from "../../definition/result.ts";
import type { StateSpec } from "../../definition/spec.ts";
import type { SecretFilter } from "../../journal/redaction.ts";
import type { StepCall, StepOptions } from "../../journal/seam.ts";
import type { Attempt } from "../attempt.ts";
import type { AttemptJournal } from "../attempt-steps.ts";
import type { ActOutcome, ActScope, AvailableTools, ScopedSteps } from "../executor.ts";
import { cancelReason, type Limits } from "../limits/limits.ts";
import { type Calls, createCalls } from "../tool-calls/run-tool-calls.ts";
import { checkedOutput } from "./check-outcome.ts";
import { endedBeforeAct } from "./enter.ts";
import { ENTERED, leftWith } from "./phases.ts";

export interface BusyListener {
  busyChanged(): void;
}

/** The scope of one attempt for as long as it is open: what its executor asked for and is at work, and its end. */
export class OpenScope {
  readonly scope: ActScope;
  readonly #attempt: Attempt;
  #calls: Calls | undefined;
  #closed = false;
  #working = 0;
  #listener: BusyListener | undefined;

  /** `turnsBefore` are the turns of this state before this attempt. */
  constructor(attempt: Attempt, ctx: StageContext, turnsBefore: number) {
    this.#attempt = attempt;
    this.scope = new AttemptScope(this, attempt, ctx, turnsBefore);
  }

  /** The calls of the attempt. Made at the first call: a stage that only thinks pays for no grants. */
  get calls(): Calls {
    this.#calls ??= createCalls(this.#attempt, this.scope.ctx);
    return this.#calls;
  }

  /** Counts work that the executor asked for, from its beginning until it settles. */
  during<T>(work: () => Promise<T>): Promise<T> {
    const { executionId, ctx } = this.scope;
    if (this.#closed) {
      const message = `attempt ${ctx.attempt} of ${executionId} has ended`;
      return Promise.reject(new SluiceError("Host", "attempt_over", message));
    }
    this.#working += 1;
    this.#listener?.busyChanged();
    const working = work();
    working.then(this.#ended, this.#ended);
    return working;
  }

  /** Whether something the executor asked for is at work. */
  busy(): boolean {
    return this.#working > 0;
  }

  /** Tells this listener when `busy` may have changed. */
  onBusy(listener: BusyListener): void {
    this.#listener = listener;
  }

  /** Ends the attempt for its executor: it can ask for nothing more. Returns the requests that were never settled. */
  close(): readonly string[] {
    this.#closed = true;
    this.#listener = undefined;
    return this.#calls?.close() ?? [];
  }

  readonly #ended = (): void => {
    this.#working -= 1;
    this.#listener?.busyChanged();
  };
}

/** What an executor gets for one attempt: steps, calls through the gate, limits. Nothing else reaches a tool or a person. */
class AttemptScope implements ActScope {
  readonly steps: ScopedSteps;
  readonly ctx: StageContext;
  readonly turnsBefore: number;
  readonly #open: OpenScope;
  readonly #attempt: Attempt;

  constructor(open: OpenScope, attempt: Attempt, ctx: StageContext, turnsBefore: number) {
    this.steps = new StepsInScope(open, attempt.journal);
    this.ctx = ctx;
    this.turnsBefore = turnsBefore;
    this.#open = open;
    this.#attempt = attempt;
  }

  get state(): StateSpec {
    return this.#attempt.execution.state;
  }

  get stateId(): string {
    return this.#attempt.execution.stateId;
  }

  get executionId(): string {
    return this.#attempt.executionId;
  }

  get offer(): AvailableTools {
    return this.#attempt.execution.offer;
  }

  get limits(): Limits {
    return this.#attempt.limits;
  }

  get signal(): AbortSignal {
    return this.#attempt.execution.steps.signal;
  }

  get secrets(): SecretFilter {
    return this.#attempt.execution.deps.secrets;
  }

  // Executors take these out of their scope and call them by themselves.
  get calls(): ActScope["calls"] {
    return (turn, requests) => this.#open.during(async () => await this.#open.calls.run(turn, requests));
  }

  get wait(): ActScope["wait"] {
    const { place, journal } = this.#attempt;
    return (stepId, until) => this.#open.during(() => place.whileFree(() => journal.sleepUntil(stepId, until)));
  }

  get note(): ActScope["note"] {
    return ({ type, data }) => this.#attempt.journal.note(type, data);
  }
}

/** The attempt's steps, for as long as its scope is open. */
class StepsInScope implements ScopedSteps {
  readonly #open: OpenScope;
  readonly #journal: AttemptJournal;

  constructor(open: OpenScope, journal: AttemptJournal) {
    this.#open = open;
    this.#journal = journal;
  }

  get incarnation(): string {
    return this.#journal.incarnation;
  }

  run<T extends Json>(stepId: string, fn: (call: StepCall) => Promise<T> | T, options?: StepOptions): Promise<T> {
    return this.#open.during(() => this.#journal.run(stepId, fn, options));
  }

  now(stepId: string): Promise<number> {
    return this.#open.during(() => this.#journal.now(stepId));
  }

  sleepUntil(stepId: string, epochMs: number): Promise<void> {
    return this.#open.during(() => this.#journal.sleepUntil(stepId, epochMs));
  }

  emit(channel: string, chunk: Json): void {
    this.#journal.emit(channel, chunk);
  }

  heard(): boolean {
    return this.#journal.heard();
  }
}

/** An executor that ignores the end of its run has this long to end by itself. */
const DEAF_MS = 50;

/** The work of one attempt. An executor that is deaf is given up, but never while something it asked for is at work. */
export class Act implements BusyListener {
  readonly #attempt: Attempt;
  readonly #open: OpenScope;
  readonly #init: Json;
  #resolve: ((acted: ActOutcome | undefined) => void) | undefined;
  #reject: ((stopped: Error) => void) | undefined;
  #disarm: (() => void) | undefined;
  #onAbort: (() => void) | undefined;

  /** `turnsBefore` are the turns of this state before this attempt. */
  constructor(attempt: Attempt, ctx: StageContext, init: Json, turnsBefore: number) {
    this.#attempt = attempt;
    this.#open = new OpenScope(attempt, ctx, turnsBefore);
    this.#init = init;
  }

  /** What the executor comes to. Undefined when the run was cancelled before, a rejection when it has to stop here. */
  work(): Promise<ActOutcome | undefined> {
    this.#attempt.journal.note("stage.act", ENTERED);
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      const act = this.#attempt.execution.executor.act(this.#init, this.#open.scope);
      act.then(resolve, (thrown: unknown) => this.#fail(thrown));
      this.#open.onBusy(this);
      this.busyChanged();
    });
  }

  /** Ends the attempt for its executor, and says what it came to. */
  async end(acted: ActOutcome | undefined): Promise<ActOutcome> {
    const { execution, journal } = this.#attempt;
    this.#close();
    const cancelled = cancelReason(execution.steps.signal);
    // A token never survives its attempt, whatever the executor still has in its hands.
    for (const requestId of this.#open.close()) {
      journal.note("grant.expired", { requestId, cause: cancelled === undefined ? "attempt_finished" : "cancelled" });
    }
    const outcome =
      acted === undefined
        ? endedBeforeAct({ kind: "cancelled", reason: cancelled ?? "cancelled" })
        : await checkedOutput(journal, execution.state, acted);
    journal.note("stage.act", leftWith(outcome.status));
    return outcome;
  }

  /** Once the run is over, patience begins whenever nothing is at work any more. What is at work ends by itself then. */
  busyChanged(): void {
    this.#disarm?.();
    if (this.#resolve === undefined || this.#open.busy()) return;
    const { steps, deps } = this.#attempt.execution;
    if (!steps.signal.aborted) {
      this.#listen(steps.signal);
      return;
    }
    try {
      // Throws when the run goes on elsewhere: then nothing can be recorded here, and there is nothing to wait for.
      cancelReason(steps.signal);
      this.#disarm = deps.clock.after(DEAF_MS, () => this.#resolve?.(undefined));
    } catch (stopped) {
      this.#fail(stopped);
    }
  }

  #listen(signal: AbortSignal): void {
    if (this.#onAbort !== undefined) return;
    this.#onAbort = () => this.busyChanged();
    signal.addEventListener("abort", this.#onAbort, { once: true });
  }

  #fail(thrown: unknown): void {
    this.#reject?.(thrown instanceof Error ? thrown : new Error(messageOf(thrown)));
    this.#close();
  }

  #close(): void {
    this.#resolve = undefined;
    this.#reject = undefined;
    this.#disarm?.();
    if (this.#onAbort !== undefined) this.#attempt.execution.steps.signal.removeEventListener("abort", this.#onAbort);
  }
}
