import type { Json } from "../base/json.ts";
import type { StageContext } from "../definition/types.ts";
import type { Denied } from "./calls.ts";
import { stageContext } from "./context.ts";
import type { Execution } from "./execution.ts";
import type { Limits } from "./limits.ts";
import type { Place } from "./place.ts";
import { AttemptJournal } from "./scoped-steps.ts";

/** What the attempts of one execution share. */
export interface Attempts {
  readonly execution: Execution;
  /** `plan#1` */
  readonly executionId: string;
  readonly limits: Limits;
  readonly place: Place;
  /** Takes the calls that were refused. */
  readonly denied: Denied[];
}

/** One attempt, as its phases see it. */
export class Attempt implements Attempts {
  readonly execution: Execution;
  readonly executionId: string;
  readonly limits: Limits;
  readonly place: Place;
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

  /** The frozen context: one for as long as setup is the same. */
  contextWith(setup: Json): StageContext {
    const { execution, number, feedback } = this;
    if (this.#ctx?.setup !== setup) this.#ctx = stageContext(execution.run, execution, number, setup, feedback);
    return this.#ctx;
  }
}
