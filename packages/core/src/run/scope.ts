import { SluiceError } from "../base/errors.ts";
import type { Json } from "../base/json.ts";
import type { StageContext } from "../definition/types.ts";
import type { StepCall, StepOptions } from "../journal/seam.ts";
import type { Attempt } from "./attempt.ts";
import { type Calls, createCalls } from "./calls.ts";
import type { ActScope, ScopedSteps } from "./executor.ts";
import type { AttemptJournal } from "./scoped-steps.ts";

/** What an executor gets for one attempt: steps, calls through the gate, limits. Nothing else reaches a tool or a person. */
export class OpenScope {
  readonly scope: ActScope;
  readonly #attempt: Attempt;
  // Made at the first call: a stage that only thinks pays for no grants.
  #calls: Calls | undefined;
  #closed = false;
  #working = 0;
  #changed: (() => void) | undefined;

  /** `turnsBefore` are the turns of this state before this attempt. */
  constructor(attempt: Attempt, ctx: StageContext, turnsBefore: number) {
    const { execution, executionId, journal, place, limits } = attempt;
    const { state, stateId, steps, deps, offer } = execution;
    this.#attempt = attempt;
    this.scope = {
      steps: new StepsInScope(this, journal),
      state,
      stateId,
      executionId,
      ctx,
      turnsBefore,
      offer,
      limits,
      signal: steps.signal,
      secrets: deps.secrets,
      calls: (turn, requests) => this.during(async () => await this.#callsNow().run(turn, requests)),
      wait: (stepId, until) => this.during(() => place.whileFree(() => journal.sleepUntil(stepId, until))),
      note: ({ type, data }) => journal.note(type, data),
    };
  }

  /** Counts work that the executor asked for, from its beginning until it settles. */
  during<T>(work: () => Promise<T>): Promise<T> {
    const { executionId, ctx } = this.scope;
    if (this.#closed) {
      const message = `attempt ${ctx.attempt} of ${executionId} has ended`;
      return Promise.reject(new SluiceError("Host", "attempt_over", message));
    }
    this.#working += 1;
    this.#changed?.();
    const working = work();
    working.then(this.#ended, this.#ended);
    return working;
  }

  /** Whether something the executor asked for is at work. */
  busy(): boolean {
    return this.#working > 0;
  }

  /** Calls back when `busy` may have changed. */
  onBusy(listener: () => void): void {
    this.#changed = listener;
  }

  /** Ends the attempt for its executor: it can ask for nothing more. Returns the requests that were never settled. */
  close(): readonly string[] {
    this.#closed = true;
    this.#changed = undefined;
    return this.#calls?.close() ?? [];
  }

  readonly #ended = (): void => {
    this.#working -= 1;
    this.#changed?.();
  };

  #callsNow(): Calls {
    this.#calls ??= createCalls(this.#attempt, this.scope.ctx);
    return this.#calls;
  }
}

/** The attempt's steps, for as long as its scope is open. */
class StepsInScope implements ScopedSteps {
  readonly incarnation: string;
  readonly #open: OpenScope;
  readonly #journal: AttemptJournal;

  constructor(open: OpenScope, journal: AttemptJournal) {
    this.incarnation = journal.incarnation;
    this.#open = open;
    this.#journal = journal;
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
