import type { Json, JsonObject } from "../base/json.ts";
import type { StageContext } from "../definition/result.ts";
import { type CallUsage, NO_CALLS } from "../gate/usage.ts";
import type { EventDraft, EventType } from "../journal/events.ts";
import type {
  AwaitResumeEnd,
  RunFault,
  SleepEnd,
  StepCall,
  StepCost,
  StepOptions,
  StepRunner,
} from "../journal/seam.ts";
import { stepIds } from "../journal/step-id.ts";
import type { NextDecision } from "../machine/decide-next.ts";
import { contextOf, executionIdOf, type MachineView } from "../machine/machine-state.ts";
import type { Denied, Execution, MatchedInterrupt } from "./execution.ts";
import type { ScopedSteps } from "./executor.ts";
import { ConcurrencySlot } from "./limits/concurrency-slot.ts";
import { ExecutionLimits, Stopwatch } from "./limits/limits.ts";

/** What the attempts of an execution share. */
interface SharedByAttempts {
  readonly execution: Execution;
  /** `plan#1` */
  readonly executionId: string;
  readonly limits: ExecutionLimits;
  readonly slot: ConcurrencySlot;
  /** Collects the denied calls of all attempts. */
  readonly denied: Denied[];
  /** What the calls of all attempts have used; after a resume, also what is recorded of them. */
  readonly used: { calls: CallUsage };
}

/** An event that an attempt leaves by, if it completes. */
export interface AcceptedEvent {
  readonly decision: NextDecision;
  /** The output of the state. */
  readonly output: { readonly event: string; readonly data: JsonObject };
  /** The request by which a person approved it. */
  readonly requestId?: string;
}

/** One attempt of an execution, as its phases use it. */
export class Attempt implements SharedByAttempts {
  readonly execution: Execution;
  readonly executionId: string;
  readonly limits: ExecutionLimits;
  readonly slot: ConcurrencySlot;
  readonly denied: Denied[];
  readonly used: { calls: CallUsage };
  /** From 1. */
  readonly number: number;
  /** From the assert hook of the previous attempt, or about the execution before this one, which a person interrupted. */
  readonly feedback: string | undefined;
  readonly journal: AttemptJournal;
  /** Dropped unless the attempt completes. */
  accepted: AcceptedEvent | undefined;
  /** The interrupts that its calls started, whose handlers did not run because the execution ended. */
  readonly missed: MatchedInterrupt[] = [];
  /** How many handlers have run before its first call. */
  handled = 0;
  /** Whether this process left it, and not an earlier one that recorded it. */
  isLeftHere = false;
  #ctx: StageContext | undefined;
  /** Those that `#ctx` reads. */
  #outputs: MachineView["outputs"] | undefined;

  constructor(shared: SharedByAttempts, number = 1, feedback?: string) {
    const { execution, executionId, limits, slot, denied, used } = shared;
    this.execution = execution;
    this.executionId = executionId;
    this.limits = limits;
    this.slot = slot;
    this.denied = denied;
    this.used = used;
    this.number = number;
    this.feedback = feedback;
    this.journal = new AttemptJournal(execution.steps, executionId, number, limits);
  }

  /** The attempt after this one. */
  next(feedback: string): Attempt {
    return new Attempt(this, this.number + 1, feedback);
  }

  /** The frozen context at the entry; the same object while `setup` is the same. */
  contextWith(setup: Json): StageContext {
    return this.#ctx?.setup === setup ? this.#ctx : this.#contextOf(setup);
  }

  /** The context after the handlers of interrupts that have returned, which may have changed the run. */
  contextNow(entry: StageContext): StageContext {
    const { view, stateId, visit } = this.execution;
    // While a handler works, and after one that did not return, the run is elsewhere.
    if (view.at?.state !== stateId || view.at.visit !== visit) return entry;
    const known = this.#ctx ?? entry;
    return view.context === known.context && view.outputs === this.#outputs ? known : this.#contextOf(entry.setup);
  }

  #contextOf(setup: Json): StageContext {
    const { view } = this.execution;
    this.#outputs = view.outputs;
    this.#ctx = contextOf(view, { setup, attempt: this.number, feedback: this.feedback });
    return this.#ctx;
  }
}

export function firstAttempt(execution: Execution): Attempt {
  const { state, steps, deps, meter, stateId, visit, detours } = execution;
  const executionId = executionIdOf(stateId, visit);
  const recorded = meter.recorded.execution(steps.runId, executionId, meter.works.length);
  const watch = new Stopwatch(deps.clock, recorded?.stateMs);
  const limits = new ExecutionLimits(state.limits ?? {}, meter, deps.clock, watch, recorded);
  const watches = [watch, ...meter.works];
  const slot = new ConcurrencySlot(deps.slots, watches, detours.signal, steps);
  const shared = { execution, executionId, limits, slot, denied: [], used: { calls: NO_CALLS } };
  return new Attempt(shared, 1, execution.view.at?.feedback);
}

/** Options of a step that only decides: replay runs it again instead of reading its record. */
export const DECIDES: StepOptions = { decides: () => true };

/** Steps and events of one attempt. */
export class AttemptJournal implements ScopedSteps {
  readonly #steps: StepRunner;
  readonly #executionId: string;
  readonly #attempt: number;
  readonly #limits: ExecutionLimits | undefined;
  #pendingEvents: EventDraft[] = [];

  /** `limits` count what each step costs. */
  constructor(steps: StepRunner, executionId: string, attempt: number, limits?: ExecutionLimits) {
    this.#steps = steps;
    this.#executionId = executionId;
    this.#attempt = attempt;
    this.#limits = limits;
  }

  get incarnation(): string {
    return this.#steps.incarnation;
  }

  /** Makes an event of this attempt, to be added to a record. */
  event(type: EventType, data: JsonObject): EventDraft {
    return { type, executionId: this.#executionId, attempt: this.#attempt, data };
  }

  /** Adds an event to the attempt's next record, which saves a commit. */
  note(type: EventType, data: JsonObject): void {
    this.#pendingEvents.push(this.event(type, data));
  }

  run<T extends Json>(stepId: string, fn: (call: StepCall) => Promise<T> | T, own: StepOptions<T> = {}): Promise<T> {
    const id = this.#id(stepId);
    const limits = this.#limits;
    const options =
      limits === undefined
        ? own
        : { ...own, cost: (value: T): StepCost | undefined => limits.settle(own.cost?.(value)) };
    const pending = this.#pendingEvents;
    if (pending.length === 0) return this.#steps.run(id, fn, options);
    this.#pendingEvents = [];
    const { open } = options;
    return open === undefined
      ? this.#steps.run(id, withEvents(pending, fn), options)
      : this.#steps.run(id, fn, { ...options, open: { ...open, events: [...pending, ...open.events] } });
  }

  now(stepId: string): Promise<number> {
    return this.#steps.now(this.#id(stepId));
  }

  sleepUntil(stepId: string, epochMs: number): Promise<void> {
    return this.#steps.sleepUntil(this.#id(stepId), epochMs);
  }

  /** Sleeps across processes. A signal of `signal`, if any, ends it early. */
  sleep(stepId: string, until: number, data: JsonObject, signal?: string): Promise<SleepEnd> {
    const started = this.event("sleep.started", data);
    const pending = this.#pendingEvents;
    this.#pendingEvents = [];
    return this.#steps.sleep(this.#id(stepId), until, {
      ...(signal === undefined ? {} : { signal }),
      open: { events: [...pending, started] },
      ended: (by) => [this.event("sleep.ended", { by: by === "signal" ? "message" : by })],
    });
  }

  /** Waits for the run to be resumed after a fault. */
  awaitResume(stepId: string, fault: RunFault): Promise<AwaitResumeEnd> {
    const suspended = this.event("execution.suspended", fault);
    const pending = this.#pendingEvents;
    this.#pendingEvents = [];
    return this.#steps.awaitResume(this.#id(stepId), {
      fault: { runId: this.#steps.runId, executionId: this.#executionId, ...fault },
      open: { events: [...pending, suspended] },
      ended: (by) => [this.event("execution.continued", { by })],
    });
  }

  emit(channel: string, chunk: Json): void {
    this.#steps.emit(channel, chunk);
  }

  heard(): boolean {
    return this.#steps.heard();
  }

  #id(stepId: string): string {
    return stepIds.inAttempt(this.#executionId, this.#attempt, stepId);
  }
}

/** A function of its own, so that a step with an open record, which holds the events, does not keep them while it runs. */
function withEvents<T>(events: readonly EventDraft[], fn: (call: StepCall) => Promise<T> | T): typeof fn {
  return (call) => {
    const { event } = call;
    for (const draft of events) event(draft);
    return fn(call);
  };
}
