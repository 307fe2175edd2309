import type { Json, JsonObject } from "../base/json.ts";
import type { EventDraft, EventType } from "../journal/events.ts";
import type { StepCall, StepOptions, StepRunner } from "../journal/seam.ts";
import { stepIds } from "../journal/step-id.ts";
import type { ScopedSteps } from "./executor.ts";

/** Of a step that only decides: a replay makes it anew, whatever was recorded. */
export const DECIDES: StepOptions = { decides: () => true };

/** Steps and events of one attempt. */
export class AttemptJournal implements ScopedSteps {
  readonly #steps: StepRunner;
  readonly #executionId: string;
  readonly #attempt: number;
  #noted: EventDraft[] | undefined;

  constructor(steps: StepRunner, executionId: string, attempt: number) {
    this.#steps = steps;
    this.#executionId = executionId;
    this.#attempt = attempt;
  }

  get incarnation(): string {
    return this.#steps.incarnation;
  }

  /** An event of this attempt, for a record that is being made. */
  event(type: EventType, data: JsonObject): EventDraft {
    return { type, executionId: this.#executionId, attempt: this.#attempt, data };
  }

  /** An event that rides along with the attempt's next record: a commit of its own would buy nothing. */
  note(type: EventType, data: JsonObject): void {
    this.#noted ??= [];
    this.#noted.push(this.event(type, data));
  }

  run<T extends Json>(stepId: string, fn: (call: StepCall) => Promise<T> | T, options: StepOptions = {}): Promise<T> {
    const id = this.#id(stepId);
    const riders = this.#noted;
    if (riders === undefined) return this.#steps.run(id, fn, options);
    this.#noted = undefined;
    const { open } = options;
    if (open !== undefined) {
      return this.#steps.run(id, fn, { ...options, open: { ...open, events: [...riders, ...open.events] } });
    }
    const withRiders = (call: StepCall): Promise<T> | T => {
      for (const rider of riders) call.event(rider);
      return fn(call);
    };
    return this.#steps.run(id, withRiders, options);
  }

  now(stepId: string): Promise<number> {
    return this.#steps.now(this.#id(stepId));
  }

  sleepUntil(stepId: string, epochMs: number): Promise<void> {
    return this.#steps.sleepUntil(this.#id(stepId), epochMs);
  }

  emit(channel: string, chunk: Json): void {
    this.#steps.emit(channel, chunk);
  }

  heard(): boolean {
    return this.#steps.heard();
  }

  #id(name: string): string {
    return stepIds.inAttempt(this.#executionId, this.#attempt, name);
  }
}
