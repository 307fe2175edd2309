import { SluiceError } from "../base/errors.ts";
import type { StageContext } from "../definition/types.ts";
import { type Calls, createCalls, type Denied } from "./calls.ts";
import type { Execution } from "./execution.ts";
import type { ActScope } from "./executor.ts";
import type { Limits } from "./limits.ts";
import type { Place } from "./place.ts";
import type { AttemptJournal } from "./scoped-steps.ts";

interface ScopeParts {
  readonly execution: Execution;
  readonly journal: AttemptJournal;
  readonly ctx: StageContext;
  readonly place: Place;
  readonly limits: Limits;
  /** Turns of this state before this attempt. */
  readonly turnsBefore: number;
}

/** The loop's side of a scope. */
export interface OpenScope {
  readonly scope: ActScope;
  /** Whether something the executor asked for is at work. */
  busy(): boolean;
  /** Calls back when `busy` may have changed. */
  onBusy(listener: () => void): void;
  /** Ends the attempt for its executor: it can ask for nothing more. Returns the requests that were never settled. */
  close(): readonly string[];
}

/** What an executor gets for one attempt: steps, calls through the gate, limits. Nothing else reaches a tool or a person. */
export function openScope(parts: ScopeParts, denied: Denied[]): OpenScope {
  const { execution, journal, ctx, place, limits, turnsBefore } = parts;
  const { state, stateId, visit, steps, deps, offer } = execution;
  const executionId = `${stateId}#${visit}`;
  const completionTool = state.agent?.completionTool ?? "";
  // Made at the first call: a stage that only thinks pays for no grants.
  let calls: Calls | undefined;
  let closed = false;
  let working = 0;
  let changed: (() => void) | undefined;

  const during = async <T>(work: () => Promise<T>): Promise<T> => {
    if (closed) throw new SluiceError("Host", "attempt_over", `attempt ${ctx.attempt} of ${executionId} has ended`);
    working += 1;
    changed?.();
    try {
      return await work();
    } finally {
      working -= 1;
      changed?.();
    }
  };

  const scope: ActScope = {
    steps: {
      incarnation: steps.incarnation,
      run: (stepId, fn, options) => during(() => journal.steps.run(stepId, fn, options)),
      now: (stepId) => during(() => journal.steps.now(stepId)),
      sleepUntil: (stepId, epochMs) => during(() => journal.steps.sleepUntil(stepId, epochMs)),
      emit: journal.steps.emit,
      heard: journal.steps.heard,
    },
    state,
    stateId,
    executionId,
    ctx,
    turnsBefore,
    offer,
    limits,
    signal: steps.signal,
    calls: (turn, requests) =>
      during(() => {
        calls ??= createCalls({ execution, journal, ctx, offer, place, limits, completionTool }, denied);
        return calls.run(turn, requests);
      }),
    wait: (stepId, until) => during(() => place.whileFree(() => journal.steps.sleepUntil(stepId, until))),
    secrets: deps.secrets,
    note: ({ type, data }) => journal.note(type, data),
  };
  return {
    scope,
    busy: () => working > 0,
    onBusy: (listener) => {
      changed = listener;
    },
    close: () => {
      closed = true;
      changed = undefined;
      return calls?.close() ?? [];
    },
  };
}
