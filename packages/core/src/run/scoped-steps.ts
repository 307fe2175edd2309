import type { JsonObject } from "../base/json.ts";
import type { EventDraft, EventType } from "../journal/events.ts";
import type { StepRunner } from "../journal/seam.ts";
import type { ScopedSteps } from "./executor.ts";

/** Steps and events of one attempt. */
export interface AttemptJournal {
  readonly steps: ScopedSteps;
  /** An event of this attempt, for a record that is being made. */
  event(type: EventType, data: JsonObject): EventDraft;
  /** An event that rides along with the attempt's next record: a commit of its own would buy nothing. */
  note(type: EventType, data: JsonObject): void;
  /** The noted events that no record has taken yet. */
  rest(): readonly EventDraft[];
}

export function createAttemptJournal(steps: StepRunner, executionId: string, attempt: number): AttemptJournal {
  const prefix = `${executionId}/a${attempt}/`;
  let noted: EventDraft[] = [];
  const rest = (): readonly EventDraft[] => {
    const taken = noted;
    noted = [];
    return taken;
  };
  const event = (type: EventType, data: JsonObject): EventDraft => ({ type, executionId, attempt, data });

  return {
    event,
    note: (type, data) => {
      noted.push(event(type, data));
    },
    rest,
    steps: {
      incarnation: steps.incarnation,
      run: (stepId, fn, options = {}) => {
        const riders = rest();
        if (options.open !== undefined) {
          const events = riders.length === 0 ? options.open.events : [...riders, ...options.open.events];
          return steps.run(prefix + stepId, fn, { ...options, open: { ...options.open, events } });
        }
        if (riders.length === 0) return steps.run(prefix + stepId, fn, options);
        return steps.run(
          prefix + stepId,
          (call) => {
            for (const rider of riders) call.event(rider);
            return fn(call);
          },
          options,
        );
      },
      now: (stepId) => steps.now(prefix + stepId),
      sleepUntil: (stepId, epochMs) => steps.sleepUntil(prefix + stepId, epochMs),
      emit: steps.emit,
      heard: steps.heard,
    },
  };
}
