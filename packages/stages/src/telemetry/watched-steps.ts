import {
  type EventDraft,
  isJsonObject,
  type Json,
  type JsonObject,
  type StepCall,
  type StepOptions,
  type StepRunner,
} from "@sluice/core";
import { parseAttemptStep, redactJson } from "@sluice/core/runtime";
import type { Guarded } from "./guarded.ts";
import type { RunTelemetry } from "./telemetry.ts";

/** The steps of a run; those that are executed in this process are reported. */
export function watchedSteps(steps: StepRunner, run: RunTelemetry, guard: Guarded, now: () => number): StepRunner {
  const report = (events: readonly EventDraft[]): void => {
    if (events.length > 0) guard.ask(() => run.recorded(events.map(redacted), now()));
  };
  /** Reports what a step recorded before the step resolves. */
  const reportAfter = <T>(step: Promise<T>, events: () => readonly EventDraft[]): Promise<T> => {
    const reported = step.then((value) => {
      report(events());
      return value;
    });
    // The caller still sees the rejection; one that ignores it must not end the process.
    reported.catch(() => undefined);
    return reported;
  };

  return withMembers<StepRunner>(steps, {
    run: <T extends Json>(stepId: string, fn: (call: StepCall) => Promise<T> | T, options: StepOptions<T> = {}) => {
      let recorded: readonly EventDraft[] = [];
      const watched = (call: StepCall): Promise<T> | T => {
        const step = parseAttemptStep(stepId);
        if (step !== undefined) {
          const { executionId, attempt } = step;
          guard.ask(() => run.attempt({ executionId, attempt }, now()));
        }
        // The process that opened a record has reported its events.
        if (options.open !== undefined && call.opened?.incarnation === steps.incarnation) report(options.open.events);
        const events: EventDraft[] = [];
        recorded = events;
        const event: StepCall["event"] = (draft) => {
          call.event(draft);
          events.push(draft);
        };
        return guard.within(
          (begin) => run.within(begin),
          () => fn(withMembers(call, { event })),
        );
      };
      return reportAfter(steps.run(stepId, watched, options), () => recorded);
    },
    runChildren: (stepId, children, options) => {
      let events: readonly EventDraft[] = [];
      const joined: typeof options.joined = (ends) => {
        events = options.joined(ends);
        return events;
      };
      return reportAfter(steps.runChildren(stepId, children, { ...options, joined }), () => events);
    },
  });
}

function withMembers<T extends object>(object: T, members: Partial<T>): T {
  return new Proxy(object, {
    get: (target, name) => {
      if (Object.hasOwn(members, name)) return Reflect.get(members, name);
      const member: unknown = Reflect.get(target, name);
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
}

/** The event as in the journal. Redaction is lazy, because the data of most events is never read. */
export function redacted(draft: EventDraft): EventDraft {
  let data: JsonObject | undefined;
  return {
    type: draft.type,
    ...(draft.executionId === undefined ? {} : { executionId: draft.executionId }),
    ...(draft.attempt === undefined ? {} : { attempt: draft.attempt }),
    get data() {
      const clean = data ?? redactJson(draft.data);
      data = isJsonObject(clean) ? clean : {};
      return data;
    },
  };
}
