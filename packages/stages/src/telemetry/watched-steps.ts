import {
  type ChildRun,
  type EventDraft,
  isJsonObject,
  type Json,
  type JsonObject,
  type ReceivedSignal,
  type RunChildrenOptions,
  type SiblingEnd,
  type StepCall,
  type StepOptions,
  type StepRunner,
  type WaitOptions,
} from "@sluice/core";
import { parseAttemptStep, redactJson } from "@sluice/core/runtime";
import type { AttemptScope } from "./telemetry.ts";

/** Observes the steps of a run that are executed in this process. */
export interface StepWatch {
  attempt(scope: AttemptScope): void;
  recorded(events: readonly EventDraft[]): void;
  within<T>(work: () => T): T;
}

/** Wraps the steps of a run and reports them to a `StepWatch`. */
export class WatchedSteps implements StepRunner {
  readonly #steps: StepRunner;
  readonly #watch: StepWatch;

  constructor(steps: StepRunner, watch: StepWatch) {
    this.#steps = steps;
    this.#watch = watch;
  }

  get runId(): string {
    return this.#steps.runId;
  }

  get incarnation(): string {
    return this.#steps.incarnation;
  }

  get signal(): AbortSignal {
    return this.#steps.signal;
  }

  run<T extends Json>(stepId: string, fn: (call: StepCall) => Promise<T> | T, options: StepOptions = {}): Promise<T> {
    const watch = this.#watch;
    let recorded: EventDraft[] | undefined;
    const watched = (call: StepCall): Promise<T> | T => {
      const step = parseAttemptStep(stepId);
      if (step !== undefined) watch.attempt({ executionId: step.executionId, attempt: step.attempt });
      // The process that opened a record has reported its events.
      if (options.open !== undefined && call.opened?.incarnation === this.incarnation)
        this.#report(options.open.events);
      const events: EventDraft[] = [];
      recorded = events;
      return watch.within(() => fn(collectEvents(call, events)));
    };
    return this.#reportAfter(this.#steps.run(stepId, watched, options), () => recorded);
  }

  runChildren(
    stepId: string,
    children: readonly ChildRun[],
    options: RunChildrenOptions,
  ): Promise<Readonly<Record<string, SiblingEnd>>> {
    let joined: readonly EventDraft[] | undefined;
    const watched: RunChildrenOptions = {
      ...options,
      joined: (ends) => {
        joined = options.joined(ends);
        return joined;
      },
    };
    return this.#reportAfter(this.#steps.runChildren(stepId, children, watched), () => joined);
  }

  now(stepId: string): Promise<number> {
    return this.#steps.now(stepId);
  }

  sleepUntil(stepId: string, epochMs: number): Promise<void> {
    return this.#steps.sleepUntil(stepId, epochMs);
  }

  waitForSignal(name: string, options?: WaitOptions): Promise<ReceivedSignal | undefined> {
    return this.#steps.waitForSignal(name, options);
  }

  takeSignals(stepId: string, name: string): Promise<readonly ReceivedSignal[]> {
    return this.#steps.takeSignals(stepId, name);
  }

  emit(channel: string, chunk: Json): void {
    this.#steps.emit(channel, chunk);
  }

  heard(): boolean {
    return this.#steps.heard();
  }

  /** Reports what a step recorded before the step resolves. */
  #reportAfter<T>(step: Promise<T>, events: () => readonly EventDraft[] | undefined): Promise<T> {
    const reported = step.then((value) => {
      this.#report(events() ?? []);
      return value;
    });
    // The caller still sees the rejection; one that ignores it must not end the process.
    reported.catch(() => undefined);
    return reported;
  }

  #report(events: readonly EventDraft[]): void {
    if (events.length > 0) this.#watch.recorded(events.map(redacted));
  }
}

/** The same call, whose events are also collected in `events`. */
function collectEvents(call: StepCall, events: EventDraft[]): StepCall {
  const event: StepCall["event"] = (draft) => {
    call.event(draft);
    events.push(draft);
  };
  return new Proxy(call, {
    get: (target, name) => {
      if (name === "event") return event;
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
