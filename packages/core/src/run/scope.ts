import type { StageContext } from "../definition/types.ts";
import { createCalls, type Denied } from "./calls.ts";
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
}

/** What an executor gets for one attempt: steps, calls through the gate, limits. Nothing else reaches a tool or a person. */
export function createScope({ execution, journal, ctx, place, limits }: ScopeParts, denied: Denied[]): ActScope {
  const { state, stateId, visit, steps, deps, offer, turnsBefore } = execution;
  const completionTool = state.agent?.completionTool ?? "";
  // Made at the first call: a stage that only thinks pays for no grants.
  let calls: ReturnType<typeof createCalls> | undefined;
  return {
    steps: journal.steps,
    state,
    stateId,
    executionId: `${stateId}#${visit}`,
    ctx,
    turnsBefore,
    offer,
    limits,
    signal: steps.signal,
    calls: (turn, requests) => {
      calls ??= createCalls({ execution, journal, ctx, offer, place, completionTool }, denied);
      return calls(turn, requests);
    },
    wait: (stepId, until) => place.whileFree(() => journal.steps.sleepUntil(stepId, until)),
    secrets: deps.secrets,
    note: ({ type, data }) => journal.note(type, data),
  };
}
