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

/** What an executor gets for one attempt: steps, calls through the gate, limits. Nothing else reaches a tool or a person. */
export function createScope(
  parts: ScopeParts,
  denied: Denied[],
): {
  readonly scope: ActScope;
  /** Ends the attempt for its calls; returns the requests that were never settled. */
  close(): readonly string[];
} {
  const { execution, journal, ctx, place, limits, turnsBefore } = parts;
  const { state, stateId, visit, steps, deps, offer } = execution;
  const executionId = `${stateId}#${visit}`;
  const completionTool = state.agent?.completionTool ?? "";
  // Made at the first call: a stage that only thinks pays for no grants.
  let calls: Calls | undefined;
  let closed = false;
  const scope: ActScope = {
    steps: journal.steps,
    state,
    stateId,
    executionId,
    ctx,
    turnsBefore,
    offer,
    limits,
    signal: steps.signal,
    calls: async (turn, requests) => {
      if (closed) throw new SluiceError("Host", "attempt_over", `attempt ${ctx.attempt} of ${executionId} has ended`);
      calls ??= createCalls({ execution, journal, ctx, offer, place, limits, completionTool }, denied);
      return await calls.run(turn, requests);
    },
    wait: (stepId, until) => place.whileFree(() => journal.steps.sleepUntil(stepId, until)),
    secrets: deps.secrets,
    note: ({ type, data }) => journal.note(type, data),
  };
  return {
    scope,
    close: () => {
      closed = true;
      return calls?.close() ?? [];
    },
  };
}
