import type { StepOptions } from "../../journal/seam.ts";
import { type RequestStepPart, stepIds, stepNames } from "../../journal/step-id.ts";
import { enteredOf } from "../../machine/machine-state.ts";
import { fanOutFailure } from "../../machine/transition.ts";
import type { MachineInput } from "../../machine/transition-types.ts";
import { AttemptJournal } from "../attempt.ts";
import type { Decided } from "../execution.ts";
import { noteRoute } from "../stage/decide-route.ts";
import { type Approvable, type ApproveEffect, finalDecision, type TransitionRequest } from "./approve-transition.ts";

/**
 * Asks a person about the move that follows an execution or a failed fan-out, and returns what the machine makes of the answer.
 * No execution of this run holds a concurrency slot meanwhile.
 */
export async function approveRoute(
  of: TransitionRequest["of"],
  { decision }: ApproveEffect,
  given: MachineInput,
): Promise<Decided> {
  const { input, executionId, attempts, stepId } = subjectOf(of.view, given);
  const journal = new AttemptJournal(of.steps, executionId, attempts);
  const final = await finalDecision(
    {
      of,
      input,
      requestId: stepId("open"),
      facts: { executionId, attempt: attempts },
      run: (part, record, options: StepOptions) => of.steps.run(stepId(part), record, options),
      event: (type, data) => journal.event(type, data),
      decided: (call, next) => noteRoute({ ...of, stateId: enteredOf(of.view).state }, journal, call, { input, next }),
    },
    async () => decision,
  );
  return { input: { kind: "answer", of: input, decision, approved: final.approved === true }, decision: final };
}

interface Subject {
  readonly input: Approvable;
  readonly executionId: string;
  readonly attempts: number;
  stepId(part: RequestStepPart): string;
}

/** What led to the move, and how the steps of asking about it are called. */
function subjectOf(view: TransitionRequest["of"]["view"], input: MachineInput): Subject {
  if (input.kind === "result") {
    const { executionId, attempts } = input.result;
    const stepId: Subject["stepId"] = (part) => stepIds.inAttempt(executionId, attempts, stepNames.approval(part));
    return { input, executionId, attempts, stepId };
  }
  const failure = input.kind === "children" ? fanOutFailure(view, input.ended) : undefined;
  if (input.kind !== "children" || failure === undefined || view.pending === undefined)
    throw new Error(`no one can approve what follows ${input.kind}`);
  const { executionId, attempts } = failure;
  const { id } = view.pending;
  return { input, executionId, attempts, stepId: (part) => stepIds.fanOutApproval(id, part) };
}
