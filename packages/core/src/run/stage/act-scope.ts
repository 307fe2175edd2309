// What an executor gets for one attempt, and when an executor that ignores a cancel is abandoned.
import { isSluiceError, messageOf, SluiceError } from "../../base/errors.ts";
import { cloneJson, deepFreeze, isObject, type Json, type JsonObject } from "../../base/json.ts";
import type { StageContext, Usage } from "../../definition/result.ts";
import { type GuardHook, providerFaultPolicy } from "../../definition/state-rules.ts";
import type { EventDraft } from "../../journal/events.ts";
import { maskSecrets } from "../../journal/redaction.ts";
import type { RunFault, StepCall, StepOptions } from "../../journal/seam.ts";
import { isKindStepName, stepIds, stepNames } from "../../journal/step-id.ts";
import type { Attempt, AttemptJournal } from "../attempt.ts";
import type { Execution, StartFacts } from "../execution.ts";
import type { ActOutcome, ActScope, ScopedSteps } from "../executor.ts";
import {
  ABORT_GRACE_MS,
  type Budget,
  cancelReason,
  type Deadline,
  type ExecutionLimits,
  type LimitHit,
} from "../limits/limits.ts";
import { acceptEvent, acceptedBefore } from "../requests/accept.ts";
import { type AnswerRule, startUnwalled } from "../requests/answer.ts";
import { askPerson } from "../requests/ask-person.ts";
import { type Calls, createCalls } from "../tool-calls/run-tool-calls.ts";
import { checkedOutput, readOutcome } from "./check-outcome.ts";
import { endedBeforeAct } from "./enter.ts";
import { ENTERED, left } from "./phases.ts";
import { type SleepCounts, sleepThrough } from "./sleep.ts";

/**
 * Runs the executor of an attempt, and returns what it returns. `turnsBefore` are the turns of this state before this attempt.
 * `ABANDONED` if it ignores a cancel for the grace period, which starts when none of its work is in flight, or if it was left.
 * Rejects if the run has to stop in this process.
 */
export function act(
  attempt: Attempt,
  work: ActWork,
  ctx: StageContext,
  init: Json,
  turnsBefore: number,
): Promise<Acted> {
  attempt.journal.note("stage.act", ENTERED);
  return work.act(init, new AttemptScope(attempt, work, ctx, turnsBefore));
}

/** The outcome of an attempt whose executor returned `acted`. */
export async function endAct(attempt: Attempt, work: ActWork, acted: Acted): Promise<ActOutcome> {
  const { execution, journal, slot } = attempt;
  const { detours } = execution;
  // The executor may not have awaited a call, whose interrupts are handled, or which waits for the slot.
  const handled = work.end();
  if (handled !== undefined) await handled;
  const unsettled = work.close();
  const acquiring = slot.acquire();
  if (acquiring instanceof Promise) await acquiring;
  if (detours.fault !== undefined) throw detours.fault.thrown;
  const cancelled = cancelReason(detours.signal);
  // A token never survives its attempt, even if the executor still holds it.
  for (const requestId of unsettled) {
    journal.note("grant.expired", { requestId, cause: cancelled === undefined ? "attempt_finished" : "cancelled" });
  }
  const outcome =
    acted === ABANDONED || isEndedEarly(execution)
      ? cancelledWith(acted, cancelled ?? "cancelled", execution)
      : await checkedAct(attempt, acted);
  journal.note("stage.act", left("outcome", outcome.status));
  return outcome;
}

function isEndedEarly({ detours: { left: leftBy, interrupted } }: Execution): boolean {
  return leftBy !== undefined || interrupted !== undefined;
}

async function checkedAct(attempt: Attempt, acted: ActOutcome): Promise<ActOutcome> {
  const { execution } = attempt;
  const given = acceptedBy(attempt, isObject(acted) ? { ...acted } : acted);
  const outcome = await checkedOutput(attempt, given);
  // An interruption may have come with the check.
  const isOver = outcome.status === "cancelled" && isEndedEarly(execution);
  return isOver ? cancelledWith(given, outcome.reason, execution) : outcome;
}

/** What was used counts, however the executor of a cancelled attempt ends. What it did counts if the state is entered again. */
function cancelledWith(acted: Acted, reason: string, { detours }: Execution): ActOutcome {
  const none = endedBeforeAct({ kind: "cancelled", reason });
  const outcome = acted === ABANDONED ? none : readOutcome("", acted);
  const { turns, usage } = outcome;
  const partial = detours.interrupted === undefined ? undefined : partialOf(outcome);
  return { status: "cancelled", reason, turns, usage, ...(partial === undefined ? {} : { partial }) };
}

/** What an interrupted execution has done: it may have completed just then. */
function partialOf(outcome: ActOutcome): Json | undefined {
  const partial =
    outcome.status === "cancelled" ? outcome.partial : outcome.status === "completed" ? outcome.output : undefined;
  const own = partial === undefined ? undefined : cloneJson(partial);
  return own?.ok === true ? own.value : undefined;
}

/** An attempt that completes after an event was accepted has the output that the machine decided about. */
function acceptedBy({ accepted }: Attempt, acted: ActOutcome): ActOutcome {
  return accepted !== undefined && isObject(acted) && acted.status === "completed"
    ? { ...acted, output: accepted.output }
    : acted;
}

/** What an executor returned; it may be user code, so that it is an outcome is checked later. */
type Acted = ActOutcome | typeof ABANDONED;
type Resolve = (acted: Acted | Promise<never>) => void;
const ABANDONED: unique symbol = Symbol("abandoned");

/** What the executor of one attempt has in flight. A class, since functions for this cost each waiting run more. */
export class ActWork {
  readonly #attempt: Attempt;
  #inFlight = 0;
  #closed = false;
  /** Takes what the executor returns; undefined once that is known. */
  #resolve: Resolve | undefined;
  /** Ends the grace period. */
  #disarm: (() => void) | undefined;
  /** Created by the first call: an attempt without calls needs no grants. */
  calls: Calls | undefined;

  constructor(attempt: Attempt) {
    this.#attempt = attempt;
  }

  /** Whether the attempt has ended. */
  get closed(): boolean {
    return this.#closed;
  }

  act(init: Json, scope: ActScope): Promise<Acted> {
    const { executor, detours } = this.#attempt.execution;
    const acted = new Promise<Acted>((resolve) => {
      this.#resolve = resolve;
    });
    detours.acting = this;
    try {
      // A kind may return what is not a promise, or a promise whose own `then` passes on what never ends.
      Reflect.apply(Promise.prototype.then, Promise.resolve(executor.act(init, scope)), [
        (outcome: ActOutcome) => this.#settle()?.(outcome),
        (thrown: unknown) => this.#fail(thrown),
      ]);
    } catch (thrown) {
      this.#fail(thrown);
    }
    this.check();
    return acted;
  }

  /** To be called whenever the signal has aborted. */
  check(): void {
    const { detours, deps } = this.#attempt.execution;
    this.#disarm?.();
    if (this.#resolve === undefined || this.#inFlight > 0) return;
    // Not its own member, which a kind could have given to it.
    if (!Reflect.get(AbortSignal.prototype, "aborted", detours.signal)) return;
    try {
      // Throws when the run continues elsewhere: nothing can be recorded here, so there is nothing to wait for.
      cancelReason(detours.signal);
      this.#disarm = deps.clock.after(ABORT_GRACE_MS, () => this.#settle()?.(ABANDONED));
    } catch (stopped) {
      this.#fail(stopped);
    }
  }

  #settle(): Resolve | undefined {
    const resolve = this.#resolve;
    if (resolve === undefined) return undefined;
    this.#resolve = undefined;
    this.#disarm?.();
    this.#attempt.execution.detours.acting = undefined;
    return resolve;
  }

  #fail(thrown: unknown): void {
    const { detours } = this.#attempt.execution;
    const resolve = this.#settle();
    // An execution that was left takes no more steps, so whatever its executor throws has no effect.
    // One that was interrupted may throw for that reason, unless its run has to stop here.
    const isInterrupted = detours.interrupted !== undefined && !(isSluiceError(thrown) && thrown.class === "Host");
    if (detours.left !== undefined || isInterrupted) resolve?.(ABANDONED);
    else resolve?.(Promise.reject(thrown instanceof Error ? thrown : new Error(messageOf(thrown))));
  }

  during<T>(work: () => Promise<T>): Promise<T> {
    const { number, executionId, execution, slot } = this.#attempt;
    const { detours } = execution;
    if (this.#closed || detours.left !== undefined) {
      const message = `attempt ${number} of ${executionId} has ended`;
      return rejected(new SluiceError("Host", "attempt_over", message));
    }
    if (detours.handling !== undefined) {
      const message = `${executionId} waits for the handler of an interrupt, and can do nothing else meanwhile; await every call`;
      return rejected(new SluiceError("Host", "step_overlap", message));
    }
    // No step is open then, which would refuse it.
    if (slot.isAwaited) {
      const message = `a call of ${executionId} waits for a concurrency slot, and nothing else can be done meanwhile; await every call`;
      return rejected(new SluiceError("Host", "step_overlap", message));
    }
    const ended = (): void => {
      this.#inFlight -= 1;
      this.check();
    };
    this.#inFlight += 1;
    this.check();
    try {
      const working = work();
      working.then(ended, ended);
      return working;
    } catch (thrown) {
      ended();
      throw thrown;
    }
  }

  /** A step of the kind's own, which cannot pass for one of the run's, such as a verdict. */
  step<T>(name: string, work: () => Promise<T>): Promise<T> {
    if (isKindStepName(name)) return this.during(work);
    const message = `${this.#attempt.executionId}: a kind of state cannot name a step ${JSON.stringify(name)}: ${name === "" ? "the name is empty" : "the run uses this name itself"}; choose another one`;
    return rejected(new SluiceError("Host", "step_name_reserved", message));
  }

  /** Rejects all further work of the executor. Returns what waits for the interrupts that its calls started, if there are any. */
  end(): Promise<unknown> | undefined {
    this.#closed = true;
    const { detours } = this.#attempt.execution;
    const handling = [this.calls?.handling, detours.handling].filter((handled) => handled !== undefined);
    return handling.length === 0 ? undefined : Promise.allSettled(handling);
  }

  /** Voids what the executor's calls have not used. Returns the requests that were never settled. */
  close(): readonly string[] {
    this.#attempt.slot.endAttempt();
    return this.calls?.close() ?? [];
  }
}

/** A call of the executor's code that is not begun. Code that does not await it must not end the process with it. */
function rejected(why: SluiceError): Promise<never> {
  const rejection = Promise.reject(why);
  rejection.catch(() => undefined);
  return rejection;
}

const NO_FACTS: StartFacts = new Map();

/** The scope of one attempt. A class, since an object of functions costs each waiting run more than a kilobyte. */
class AttemptScope implements ActScope {
  readonly #attempt: Attempt;
  readonly #work: ActWork;
  readonly #entry: StageContext;
  /** The names of its requests; created on first use. */
  #asked: Set<string> | undefined;
  #candidates = 0;
  #sleeps = 0;
  #suspensions = 0;
  #counts: SleepCounts | undefined;
  readonly state: ActScope["state"];
  readonly stateId: string;
  readonly events: ActScope["events"];
  readonly targets: ActScope["targets"];
  readonly pauses: boolean;
  readonly afterPause: boolean;
  readonly executionId: string;
  /** Set again after calls: the handler of an interrupt may have changed it. */
  ctx: StageContext;
  readonly turnsBefore: number;
  readonly offer: ActScope["offer"];
  readonly env: ActScope["env"];
  readonly steps: ScopedSteps;
  readonly budget: ActScope["budget"];
  readonly deadline: ActScope["deadline"];
  readonly signal: AbortSignal;
  readonly secrets: ActScope["secrets"];
  readonly mode: ActScope["mode"];
  readonly kept: object;
  readonly closing?: true;
  readonly returns?: true;

  constructor(attempt: Attempt, work: ActWork, entry: StageContext, turnsBefore: number) {
    this.#attempt = attempt;
    this.#work = work;
    this.#entry = entry;
    const { execution, executionId, limits } = attempt;
    const { state, stateId, events, targets, pauses, offer, env, deps, detours, kept, closing, returns } = execution;
    this.state = state;
    this.stateId = stateId;
    this.events = events;
    this.targets = targets;
    this.pauses = pauses;
    this.afterPause = execution.view.at?.afterPause === true;
    this.executionId = executionId;
    this.ctx = entry;
    this.turnsBefore = turnsBefore;
    this.offer = offer;
    this.env = env;
    this.steps = new KindSteps(attempt, work);
    const own = new KindLimits(limits, work);
    this.budget = own;
    this.deadline = own;
    this.signal = detours.signal;
    this.secrets = deps.secrets;
    this.mode = deps.mode;
    this.kept = kept;
    if (closing !== undefined) this.closing = closing;
    if (returns !== undefined) this.returns = returns;
  }

  // Functions, since a kind may take them off the scope; made on access, since most attempts use few of them.
  get startsUnwalled(): ActScope["startsUnwalled"] {
    const { deps, executor, state } = this.#attempt.execution;
    return () => startUnwalled(deps.answers, `a state of kind ${state.kind}`, executor);
  }

  get protectedPaths(): ActScope["protectedPaths"] {
    return this.#attempt.execution.deps.protectedPaths ?? [];
  }

  get used(): ActScope["used"] {
    return () => deepFreeze(this.#attempt.used.calls);
  }

  get calls(): ActScope["calls"] {
    return (turn, requests) =>
      this.#work.during(async () => {
        if (!Number.isSafeInteger(turn) || turn < 0) throw notATurn(turn);
        this.#work.calls ??= createCalls(this.#attempt, this.#entry);
        const outcomes = await this.#work.calls.run(turn, requests);
        this.ctx = this.#attempt.contextNow(this.#entry);
        return outcomes;
      });
  }

  get accept(): ActScope["accept"] {
    const attempt = this.#attempt;
    return (given) =>
      this.#work.during(async () => {
        const { turn, callId, event } = given;
        if (!Number.isSafeInteger(turn) || turn < 0) throw notATurn(turn);
        if (typeof event !== "string") throw new TypeError("the name of an event must be a text");
        const named = callId === undefined ? {} : { callId: String(callId) };
        const candidate = { turn, ...named, event, data: jsonCopy(given.data, `the data of ${event}`) };
        if (attempt.accepted !== undefined) return acceptedBefore(attempt.accepted);
        const number = this.#candidates;
        this.#candidates += 1;
        const { acceptance, accepted } = await acceptEvent(attempt, attempt.contextNow(this.#entry), candidate, number);
        // The attempt may have ended meanwhile, with an output of its own.
        if (!this.#work.closed) attempt.accepted = accepted;
        return acceptance;
      });
  }

  get ask(): ActScope["ask"] {
    return ({ name, ...asks }) =>
      this.#work.during(async () => {
        this.#asked ??= new Set();
        refuseRepeated(this.#asked, this.#attempt.executionId, name);
        const question = jsonCopy(asks.question, `the question ${name}`);
        return await askPerson(this.#attempt, { ...asks, name, question });
      });
  }

  get runChildren(): ActScope["runChildren"] {
    const { execution, executionId, number, slot, limits } = this.#attempt;
    const hook = (own: GuardHook): GuardHook => {
      const { kind } = execution.state;
      return (call) => own({ ...call, kind, executionId, attempt: number }, this.#attempt.contextNow(this.#entry));
    };
    return (name, children) =>
      this.#work.during(async () => {
        if (typeof name !== "string") throw new TypeError("the name of a step with children must be a text");
        const stepId = stepIds.children(executionId, number, name);
        // Read once: a getter of the kind could return another pipeline the next time.
        const own = Array.from(children, ({ key, pipeline, input, context }) => ({
          key,
          pipeline,
          input: jsonCopy(input, `the input of ${key}`),
          ...(context === undefined ? {} : { context: jsonCopy(context, `the context of ${key}`) }),
        }));
        const run = (facts: StartFacts) =>
          slot.withSlotReleased(() => execution.runChildren(stepId, own, facts, { hook, meter: limits.meter() }));
        if (own.every((child) => typeof child.pipeline === "string")) return await run(NO_FACTS);
        const facts = await execution.admit(own);
        // The attempt may have ended meanwhile.
        return await this.#work.during(() => run(facts));
      });
  }

  get wait(): ActScope["wait"] {
    const { journal, slot } = this.#attempt;
    return (stepId, until) =>
      this.#work.step(stepId, async () => {
        refuseNoTime(stepId, until);
        await slot.withSlotReleased(() => journal.sleepUntil(stepId, until));
      });
  }

  get sleep(): ActScope["sleep"] {
    return (name, until, data = {}) =>
      this.#work.step(name, async () => {
        refuseNoTime(name, until);
        this.#sleeps += 1;
        const sleep = {
          name,
          until,
          data: { ...jsonCopy<JsonObject>(data, `the data of ${name}`), until, sleeps: this.#sleeps },
        };
        this.#counts ??= { messages: 0 };
        await sleepThrough(this.#attempt, this.#counts, sleep);
      });
  }

  get providerFaults(): ActScope["providerFaults"] {
    const { state, providerFaults } = this.#attempt.execution;
    return () => providerFaultPolicy(state, providerFaults);
  }

  get suspend(): ActScope["suspend"] {
    const { execution, journal, slot } = this.#attempt;
    return (fault) =>
      this.#work.during(async () => {
        const own = jsonCopy(fault, "the fault of a suspension");
        refuseNoTime("a suspension", own.retryAt ?? 0);
        this.#suspensions += 1;
        const name = stepNames.suspension(this.#suspensions);
        const masked = maskSecrets<RunFault>(own, execution.deps.secrets);
        await slot.withSlotReleased(() => journal.awaitResume(name, masked));
      });
  }

  get note(): ActScope["note"] {
    const { journal } = this.#attempt;
    return (draft) => {
      const { type, data } = eventOfKind(draft, journal);
      journal.note(type, data);
    };
  }
}

/** The caps as a kind gets them: it can reserve while its attempt works, and settle nothing. */
class KindLimits implements Budget, Deadline {
  readonly #limits: ExecutionLimits;
  readonly #work: ActWork;

  constructor(limits: ExecutionLimits, work: ActWork) {
    this.#limits = limits;
    this.#work = work;
    Object.freeze(this);
  }

  get capped(): boolean {
    return this.#limits.capped;
  }

  reserve({ inputTokens, outputTokens, costUsd }: Usage): LimitHit | undefined {
    if (this.#work.closed) return { code: "budget", limit: "reserve", message: "the attempt has ended" };
    return this.#limits.reserve({ inputTokens, outputTokens, ...(costUsd === undefined ? {} : { costUsd }) });
  }

  exceeded(): LimitHit | undefined {
    return this.#limits.exceeded();
  }

  timed<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return this.#limits.timed(signal, work, this.#work);
  }

  runMs(): number {
    return this.#limits.runMs();
  }

  now(): number {
    return this.#limits.now();
  }
}

/** The steps of a kind's own. */
class KindSteps implements ScopedSteps {
  readonly #attempt: Attempt;
  readonly #work: ActWork;

  constructor(attempt: Attempt, work: ActWork) {
    this.#attempt = attempt;
    this.#work = work;
  }

  get incarnation(): string {
    return this.#attempt.journal.incarnation;
  }

  get run(): ScopedSteps["run"] {
    const { journal, execution } = this.#attempt;
    return (stepId, fn, options) =>
      this.#work.step(stepId, () =>
        journal.run(
          stepId,
          (call) => fn(new KindCall(call, journal)),
          openOfKind(options, journal, execution.deps.answers),
        ),
      );
  }

  get now(): ScopedSteps["now"] {
    return (stepId) => this.#work.step(stepId, () => this.#attempt.journal.now(stepId));
  }

  get sleepUntil(): ScopedSteps["sleepUntil"] {
    return (stepId, epochMs) =>
      this.#work.step(stepId, async () => {
        refuseNoTime(stepId, epochMs);
        await this.#attempt.journal.sleepUntil(stepId, epochMs);
      });
  }

  get emit(): ScopedSteps["emit"] {
    return (channel, chunk) => this.#attempt.journal.emit(channel, chunk);
  }

  get heard(): ScopedSteps["heard"] {
    return () => this.#attempt.journal.heard();
  }
}

/** The turn is a part of the ids of steps. */
function notATurn(turn: unknown): TypeError {
  return new TypeError(`a turn must be a whole number from 0, not ${String(turn)}`);
}

/** A copy of what a kind gives, which may change its object later, or return something else at the next reading. */
function jsonCopy<T>(given: T, what: string): T {
  const own = cloneJson(given);
  if (own.ok) return own.value;
  throw new SluiceError("Validation", "not_json", `${what} is not JSON: ${own.fault}`);
}

/** A wait until no time would never end, and its record could not hold it. */
function refuseNoTime(name: string, until: number): void {
  if (!Number.isFinite(until))
    throw new SluiceError("Validation", "not_json", `${name} waits until ${until}, which is not a valid time`);
}

/** The answer to one request must never count for another; what is not a text could pass for another name in its id. */
function refuseRepeated(asked: Set<string>, executionId: string, name: unknown): asserts name is string {
  const isName = typeof name === "string" && name !== "";
  if (isName && asked.size < asked.add(name).size) return;
  const why = !isName ? "has no name" : `has the name ${JSON.stringify(name)} of an earlier one`;
  throw new SluiceError("Host", "request_repeated", `${executionId}: a request ${why}; names are unique in an attempt`);
}

/** A step's call as a kind gets it: all of it, except that its events are of its attempt and not about requests. */
class KindCall implements StepCall {
  readonly #call: StepCall;
  readonly #journal: AttemptJournal;
  readonly opened?: NonNullable<StepCall["opened"]>;
  readonly recorded?: NonNullable<StepCall["recorded"]>;

  constructor(call: StepCall, journal: AttemptJournal) {
    this.#call = call;
    this.#journal = journal;
    const { opened, recorded } = call;
    if (opened !== undefined) this.opened = opened;
    if (recorded !== undefined) this.recorded = recorded;
  }

  // Functions of their own, since they are passed on without the call; made on access, since most calls use few of them.
  get event(): StepCall["event"] {
    return (draft) => this.#call.event(eventOfKind(draft, this.#journal));
  }

  get hold(): StepCall["hold"] {
    return this.#call.hold;
  }

  get signals(): StepCall["signals"] {
    return this.#call.signals;
  }

  /** Read from the call, which creates it on first access. */
  get signal(): AbortSignal {
    return this.#call.signal;
  }
}

// A kind gets these objects: what it sets on their prototypes would hold for every run of the process.
for (const { prototype } of [AttemptScope, KindLimits, KindSteps, KindCall]) Object.freeze(prototype);

function openOfKind<T extends Json>(
  options: StepOptions<T> | undefined,
  journal: AttemptJournal,
  answers: Pick<AnswerRule, "startsUnwalled">,
): StepOptions<T> | undefined {
  if (options === undefined) return undefined;
  // Read once, into an object of its own: a kind's could have other events the next time.
  const { open, ...rest } = options;
  if (open === undefined) return rest;
  // Not by the list's own `map`, which could return other events.
  const events: EventDraft[] = [];
  for (const draft of open.events) events.push(eventOfKind(draft, journal));
  // What the command starts could answer requests of its own run.
  if (events.some(({ type, data }) => type === "command.started" && data.wall === "none")) answers.startsUnwalled();
  return { ...rest, open: { ...open, events } };
}

/**
 * Only the run says what became of it: a person would be shown what a kind says of a call, the gate would take the answer, and a
 * resumed run would count a process or a sleep that never was. A draft of its own, since the kind still holds the other.
 */
const OF_THE_RUN =
  /^(?:run|stage|attempt|call|grant|request|fanOut|sleep|interrupt|execution|context|hook|transition)\.|^route\.decided$/;
function eventOfKind({ type, data }: Pick<EventDraft, "type" | "data">, journal: AttemptJournal): EventDraft {
  if (!OF_THE_RUN.test(type)) return journal.event(type, data);
  throw new SluiceError("Validation", "event_unknown", `${type} is an event that only the run writes`);
}
