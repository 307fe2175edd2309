import type { Json } from "../base/json.ts";
import type { StageContext } from "../definition/result.ts";
import { executionIdOf } from "../journal/step-id.ts";
import { AttemptJournal } from "./attempt-steps.ts";
import { stageContext } from "./context.ts";
import type { Denied, Execution } from "./execution.ts";
import { ConcurrencySlot } from "./limits/concurrency-slot.ts";
import { ExecutionLimits, type Limits, Stopwatch } from "./limits/limits.ts";

/** What the attempts of one execution share. */
interface Attempts {
  readonly execution: Execution;
  /** `plan#1` */
  readonly executionId: string;
  readonly limits: Limits;
  readonly place: ConcurrencySlot;
  /** Takes the calls that were refused. */
  readonly denied: Denied[];
}

/** The first attempt of an execution. */
export function firstAttempt(execution: Execution): Attempt {
  const { state, steps, deps, meter, stateId, visit } = execution;
  const watch = new Stopwatch(deps.clock);
  const all: Attempts = {
    execution,
    executionId: executionIdOf(stateId, visit),
    limits: new ExecutionLimits(state.limits ?? {}, meter, deps.clock, watch),
    place: new ConcurrencySlot(deps.slots, watch, meter.work, steps.signal),
    denied: [],
  };
  return new Attempt(all, 1);
}

/** One attempt, as its phases see it. */
export class Attempt implements Attempts {
  readonly execution: Execution;
  readonly executionId: string;
  readonly limits: Limits;
  readonly place: ConcurrencySlot;
  readonly denied: Denied[];
  /** Counted from 1. */
  readonly number: number;
  /** What assert said of the attempt before. */
  readonly feedback: string | undefined;
  readonly journal: AttemptJournal;
  #ctx: StageContext | undefined;

  constructor({ execution, executionId, limits, place, denied }: Attempts, number: number, feedback?: string) {
    this.execution = execution;
    this.executionId = executionId;
    this.limits = limits;
    this.place = place;
    this.denied = denied;
    this.number = number;
    this.feedback = feedback;
    this.journal = new AttemptJournal(execution.steps, executionId, number);
  }

  /** The attempt after this one. */
  next(feedback: string): Attempt {
    return new Attempt(this, this.number + 1, feedback);
  }

  /** The frozen context: one for as long as setup is the same. */
  contextWith(setup: Json): StageContext {
    const { execution, number, feedback } = this;
    if (this.#ctx?.setup !== setup) this.#ctx = stageContext(execution.run, execution, number, setup, feedback);
    return this.#ctx;
  }
}
