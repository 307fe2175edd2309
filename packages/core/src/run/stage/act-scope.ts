import { SluiceError } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import type { StageContext } from "../../definition/result.ts";
import type { StateSpec } from "../../definition/spec.ts";
import type { SecretFilter } from "../../journal/redaction/secret-filter.ts";
import type { StepCall, StepOptions } from "../../journal/seam.ts";
import type { Attempt } from "../attempt.ts";
import type { AttemptJournal } from "../attempt-steps.ts";
import type { ActScope, Offer, ScopedSteps } from "../executor.ts";
import type { Limits } from "../limits/budget.ts";
import { type Calls, createCalls } from "../tool-calls/run-tool-calls.ts";

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

  get offer(): Offer {
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
