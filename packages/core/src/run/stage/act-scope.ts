// What an executor gets for one attempt, and when an executor that ignores a cancel is abandoned.
import { messageOf, SluiceError } from "../../base/errors.ts";
import type { Json } from "../../base/json.ts";
import type { StageContext } from "../../definition/result.ts";
import type { StateSpec } from "../../definition/spec.ts";
import type { CallRequest } from "../../gate/authorize-call.ts";
import type { SecretFilter } from "../../journal/redaction.ts";
import type { Attempt, AttemptJournal } from "../attempt.ts";
import type { ActOutcome, ActScope, AvailableTools, CallOutcome, ScopedSteps } from "../executor.ts";
import { ABORT_GRACE_MS, type Budget, cancelReason, type Deadline } from "../limits/limits.ts";
import { type Calls, createCalls } from "../tool-calls/run-tool-calls.ts";
import { checkedOutput } from "./check-outcome.ts";
import { endedBeforeAct } from "./enter.ts";
import { ENTERED, left } from "./phases.ts";

/** Runs the executor of an attempt. `turnsBefore` are the turns of this state before this attempt. */
export async function act(attempt: Attempt, ctx: StageContext, init: Json, turnsBefore: number): Promise<ActOutcome> {
  const { execution, journal } = attempt;
  journal.note("stage.act", ENTERED);
  const acting = new Acting(attempt, ctx, turnsBefore);
  const acted = await acting.outcome(init);
  const cancelled = cancelReason(execution.steps.signal);
  // A token never survives its attempt, even if the executor still holds it.
  for (const requestId of acting.close()) {
    journal.note("grant.expired", { requestId, cause: cancelled === undefined ? "attempt_finished" : "cancelled" });
  }
  const outcome =
    acted === undefined
      ? endedBeforeAct({ kind: "cancelled", reason: cancelled ?? "cancelled" })
      : await checkedOutput(journal, execution.state, acted);
  journal.note("stage.act", left("outcome", outcome.status));
  return outcome;
}

/** The executor of one attempt, and the work that it has in flight. */
class Acting {
  readonly #attempt: Attempt;
  readonly #scope: AttemptScope;
  /** Created by the first call: an attempt without calls needs no grants. */
  #calls: Calls | undefined;
  #closed = false;
  #settled = false;
  #inFlight = 0;
  #resolve: ((abandoned: undefined) => void) | undefined;
  #reject: ((fault: Error) => void) | undefined;
  #disarm: (() => void) | undefined;

  constructor(attempt: Attempt, ctx: StageContext, turnsBefore: number) {
    this.#attempt = attempt;
    this.#scope = new AttemptScope(this, attempt, ctx, turnsBefore);
  }

  /**
   * What the executor returns. Undefined if it ignores a cancel for the grace period, which starts when none of its work is
   * in flight. Rejects if the run has to stop in this process.
   */
  outcome(init: Json): Promise<ActOutcome | undefined> {
    const { executor, steps } = this.#attempt.execution;
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      executor.act(init, this.#scope).then(resolve, (thrown: unknown) => this.#fail(thrown));
      steps.signal.addEventListener("abort", this, { once: true });
      this.#check();
    });
  }

  /** The run's signal aborts. */
  handleEvent(): void {
    this.#check();
  }

  /** Work of the executor. Rejects after the attempt has ended. */
  during<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closed) {
      const { number, executionId } = this.#attempt;
      return Promise.reject(new SluiceError("Host", "attempt_over", `attempt ${number} of ${executionId} has ended`));
    }
    this.#inFlight += 1;
    this.#check();
    const working = work();
    working.then(this.#ended, this.#ended);
    return working;
  }

  async calls(turn: number, requests: readonly CallRequest[]): Promise<readonly CallOutcome[]> {
    this.#calls ??= createCalls(this.#attempt, this.#scope.ctx);
    return await this.#calls.run(turn, requests);
  }

  /** Rejects all further work of the executor. Returns the requests that were never settled. */
  close(): readonly string[] {
    this.#settle();
    this.#closed = true;
    return this.#calls?.close() ?? [];
  }

  readonly #ended = (): void => {
    this.#inFlight -= 1;
    this.#check();
  };

  #settle(): void {
    this.#settled = true;
    this.#disarm?.();
    this.#attempt.execution.steps.signal.removeEventListener("abort", this);
  }

  #fail(thrown: unknown): void {
    this.#settle();
    this.#reject?.(thrown instanceof Error ? thrown : new Error(messageOf(thrown)));
  }

  /** Gives an idle executor its grace period once the run is cancelled. */
  #check(): void {
    const { steps, deps } = this.#attempt.execution;
    this.#disarm?.();
    if (this.#settled || !steps.signal.aborted || this.#inFlight > 0) return;
    try {
      // Throws when the run continues elsewhere: nothing can be recorded here, so there is nothing to wait for.
      cancelReason(steps.signal);
      this.#disarm = deps.clock.after(ABORT_GRACE_MS, () => {
        this.#settle();
        this.#resolve?.(undefined);
      });
    } catch (stopped) {
      this.#fail(stopped);
    }
  }
}

// What an executor gets is made of getters: its functions are passed on without their object, and a waiting run has few of them.

class AttemptScope implements ActScope {
  readonly ctx: StageContext;
  readonly turnsBefore: number;
  readonly steps: ScopedSteps;
  readonly #acting: Acting;
  readonly #attempt: Attempt;

  constructor(acting: Acting, attempt: Attempt, ctx: StageContext, turnsBefore: number) {
    this.ctx = ctx;
    this.turnsBefore = turnsBefore;
    this.steps = new ActSteps(acting, attempt.journal);
    this.#acting = acting;
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

  get budget(): Budget {
    return this.#attempt.limits;
  }

  get deadline(): Deadline {
    return this.#attempt.limits;
  }

  get signal(): AbortSignal {
    return this.#attempt.execution.steps.signal;
  }

  get secrets(): SecretFilter {
    return this.#attempt.execution.deps.secrets;
  }

  get calls(): ActScope["calls"] {
    return (turn, requests) => this.#acting.during(() => this.#acting.calls(turn, requests));
  }

  get wait(): ActScope["wait"] {
    const { slot, journal } = this.#attempt;
    return (stepId, until) => this.#acting.during(() => slot.withSlotReleased(() => journal.sleepUntil(stepId, until)));
  }

  get note(): ActScope["note"] {
    return ({ type, data }) => this.#attempt.journal.note(type, data);
  }
}

class ActSteps implements ScopedSteps {
  readonly #acting: Acting;
  readonly #journal: AttemptJournal;

  constructor(acting: Acting, journal: AttemptJournal) {
    this.#acting = acting;
    this.#journal = journal;
  }

  get incarnation(): string {
    return this.#journal.incarnation;
  }

  get run(): ScopedSteps["run"] {
    return (stepId, fn, options) => this.#acting.during(() => this.#journal.run(stepId, fn, options));
  }

  get now(): ScopedSteps["now"] {
    return (stepId) => this.#acting.during(() => this.#journal.now(stepId));
  }

  get sleepUntil(): ScopedSteps["sleepUntil"] {
    return (stepId, epochMs) => this.#acting.during(() => this.#journal.sleepUntil(stepId, epochMs));
  }

  get emit(): ScopedSteps["emit"] {
    return (channel, chunk) => this.#journal.emit(channel, chunk);
  }

  get heard(): ScopedSteps["heard"] {
    return () => this.#journal.heard();
  }
}
