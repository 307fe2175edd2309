import {
  type ChildRun,
  type EventDraft,
  isJsonObject,
  type Json,
  type JsonObject,
  parseAttemptStep,
  type ReceivedSignal,
  type RunChildrenOptions,
  redactJson,
  type SiblingEnd,
  type StepCall,
  type StepOptions,
  type StepRunner,
  type WaitOptions,
} from "@sluice/core";
import type { AttemptScope } from "./telemetry.ts";

/** What hears of the steps of one run that are done here, not of those that are read back. */
export interface StepWatch {
  attempt(place: AttemptScope): void;
  recorded(events: readonly EventDraft[]): void;
  within<T>(work: () => T): T;
}

/** The steps of a run with somebody who watches: nothing else about them is different. */
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
    let gathered: EventDraft[] | undefined;
    const watched = (call: StepCall): Promise<T> | T => {
      const step = parseAttemptStep(stepId);
      if (step !== undefined) watch.attempt({ executionId: step.executionId, attempt: step.attempt });
      // What an earlier process announced was told there.
      if (options.open !== undefined && call.opened?.incarnation === this.incarnation) this.#told(options.open.events);
      const events: EventDraft[] = [];
      gathered = events;
      return watch.within(() => fn(heard(call, events)));
    };
    return this.#afterwards(this.#steps.run(stepId, watched, options), () => gathered);
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
    return this.#afterwards(this.#steps.runChildren(stepId, children, watched), () => joined);
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

  /** Tells what a step recorded, before anything follows from it. */
  #afterwards<T>(step: Promise<T>, events: () => readonly EventDraft[] | undefined): Promise<T> {
    const told = step.then((value) => {
      this.#told(events() ?? []);
      return value;
    });
    // Whoever asked for the step still sees the rejection; one who does not look must not bring the process down.
    told.catch(() => undefined);
    return told;
  }

  #told(events: readonly EventDraft[]): void {
    if (events.length > 0) this.#watch.recorded(events.map(redacted));
  }
}

/** A step's call whose events are heard; all else about it is as it was. */
function heard(call: StepCall, events: EventDraft[]): StepCall {
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

/** As the journal keeps it. Secrets are replaced when somebody looks at the data: most events are only counted. */
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
