// A state asks to move by an event: the machine decides, and a person where the row wants that.
import { isJsonObject, type JsonObject, wellFormed } from "../../base/json.ts";
import type { StageContext } from "../../definition/result.ts";
import type { StepCall, StepOptions } from "../../journal/seam.ts";
import { stepIds, stepNames } from "../../journal/step-id.ts";
import type { NextDecision, RejectedRow } from "../../machine/decide-next.ts";
import { choiceText, type LegalEvent } from "../../machine/legal-events.ts";
import { follow } from "../../machine/transition.ts";
import type { AcceptedEvent, Attempt } from "../attempt.ts";
import type { Execution } from "../execution.ts";
import type { Acceptance } from "../executor.ts";
import { decideInRun } from "../stage/decide-route.ts";
import { type Approvable, finalDecision, type PendingDecision } from "./approve-transition.ts";

/** An event that a state sends. */
export interface EventCandidate {
  readonly turn: number;
  /** The model's call, if there is one, for readers of the events. */
  readonly callId?: string;
  readonly event: string;
  readonly data: JsonObject;
}

/** Decides about an event. `number` counts those of the attempt, from 0. */
export async function acceptEvent(
  attempt: Attempt,
  ctx: StageContext,
  candidate: EventCandidate,
  number: number,
): Promise<{ readonly acceptance: Acceptance; readonly accepted?: AcceptedEvent }> {
  const { execution, executionId, journal, slot, number: attemptNumber } = attempt;
  const { deps } = execution;
  const { turn, callId } = candidate;
  const place = { turn, ...(callId === undefined ? {} : { callId }) };
  const event = deps.secrets.text(candidate.event.toWellFormed());
  const masked = wellFormed(deps.secrets.json(candidate.data));
  const data = isJsonObject(masked) ? masked : {};
  const input: Approvable = { kind: "event", event, data, ctx };
  const requestId = stepIds.inAttempt(executionId, attemptNumber, stepNames.accept(turn, number));
  const decided = (call: StepCall, decision: NextDecision): void => {
    const rejected = rejectedIn(execution, input, decision);
    const said =
      rejected === undefined
        ? journal.event("transition.accepted", { ...place, event, to: choiceText(decision.choice) })
        : journal.event("transition.rejected", { ...place, event, ...refused(decision), ...reasonsOf(rejected) });
    call.event(said);
  };
  const decision = await finalDecision(
    {
      of: execution,
      requestId,
      input,
      facts: { executionId, attempt: attemptNumber, turn, data },
      about: { event, data },
      run: (part, record: (call: StepCall) => Promise<PendingDecision>, options: StepOptions) =>
        journal.run(stepNames.accept(turn, number, part), record, options),
      event: (type, said) => journal.event(type, said),
      decided,
      unslotted: (wait) => slot.withSlotReleased(wait),
    },
    () => decideInRun(execution, input),
  );
  const rejected = rejectedIn(execution, input, decision);
  if (rejected !== undefined) return { acceptance: { accepted: false, output: rejected } };
  const output = { event, data };
  const approval = decision.approved === true ? { requestId } : {};
  return { acceptance: { accepted: true, output }, accepted: { decision, output, ...approval } };
}

/** The row that would have led on if a person had approved it. */
function refused({ row }: NextDecision): { readonly row?: number } {
  return row === undefined ? {} : { row };
}

function reasonsOf({ reason, rows }: Rejection): Pick<Rejection, "reason" | "rows"> {
  return { reason, rows };
}

/** An event of an attempt that already leaves by another one. */
export function acceptedBefore({ output: { event } }: AcceptedEvent): Acceptance {
  const reason = `${event} was accepted before, and this attempt ends with it`;
  return { accepted: false, output: rejection(reason, [], []) };
}

/** What the model reads of an event that was refused. A type, since it is JSON. */
type Rejection = {
  readonly code: "transition_rejected";
  readonly reason: string;
  /** The rows of the event that did not fire. */
  readonly rows: readonly (RejectedRow & { readonly when?: string })[];
  readonly legal: readonly LegalEvent[];
};

function rejection(reason: string, rows: Rejection["rows"], legal: Rejection["legal"]): Rejection {
  return { code: "transition_rejected", reason, rows, legal };
}

/** Why the state continues; undefined if it moves. */
function rejectedIn({ spec, view }: Execution, input: Approvable, decision: NextDecision): Rejection | undefined {
  const { by, choice } = decision;
  // Not a choice of the pipeline: the run was cancelled before it decided.
  if (by === "default" && choice.kind === "cancel") return rejection(choice.reason, [], []);
  const { effect } = follow(spec, view, input, decision);
  if (effect.kind !== "stay") return undefined;
  const { routes } = spec;
  const rows = effect.rejected.map((rejected) => {
    const when = routes.kind === "table" ? routes.rows[rejected.row]?.when?.text : undefined;
    return when === undefined ? rejected : { ...rejected, when };
  });
  return rejection(effect.reason, rows, effect.legal);
}
