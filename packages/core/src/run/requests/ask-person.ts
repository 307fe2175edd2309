import { digestOf } from "../../base/canonical.ts";
import { isJsonObject, type JsonObject, wellFormed } from "../../base/json.ts";
import type { OpenRequest, StepCall } from "../../journal/seam.ts";
import { stepIds, stepNames } from "../../journal/step-id.ts";
import { valueFault } from "../../people/interactor.ts";
import { type Attempt, DECIDES } from "../attempt.ts";
import type { AskOutcome } from "../executor.ts";
import { cancelReason } from "../limits/limits.ts";
import { answeredByOf, awaitAnswer, type JournaledAnswer, questionFault, readAnswer } from "./answer.ts";

/** What a state asks a person for. */
export interface PersonQuestion {
  /** Unique in the attempt. */
  readonly name: string;
  readonly question: JsonObject;
  /** How long it stays open, in milliseconds. */
  readonly timeoutMs?: number;
}

/** The record that opens a request, or says why no one is asked. `until` is its deadline, which the body says too. */
type OpenedRequest =
  | { readonly kind: "open"; readonly at: number; readonly body: JsonObject; readonly until?: number }
  | { readonly kind: "not_asked"; readonly outcome: AskOutcome };

/** Opens a request of a state, waits for its answer and records it. */
export async function askPerson(attempt: Attempt, { name, question, timeoutMs }: PersonQuestion): Promise<AskOutcome> {
  const { execution, executionId, journal, slot, number } = attempt;
  const { steps, deps, detours } = execution;
  const requestId = stepIds.inAttempt(executionId, number, stepNames.ask(name));
  const open = (step: StepCall): OpenedRequest => {
    const at = deps.clock.now();
    const deadline = timeoutMs === undefined ? {} : { until: at + timeoutMs };
    const masked = wellFormed(deps.secrets.json({ ...question, executionId, attempt: number, ...deadline }));
    const body = isJsonObject(masked) ? masked : {};
    const fault = questionFault(body);
    if (fault !== undefined) return { kind: "not_asked", outcome: unanswered("invalid", fault) };
    const digest = digestOf(body);
    step.event(journal.event("request.opened", { requestId, kind: "humanState", digest, body, ...deadline }));
    if (deps.people.reachable()) return { kind: "open", at, body, ...deadline };
    const none = { requestId, answer: "none", cause: "no_interactor", by: "headless" };
    step.event(journal.event("request.answered", none));
    return { kind: "not_asked", outcome: unanswered("no_interactor") };
  };
  const opened = await journal.run(stepNames.ask(name), open);
  if (opened.kind === "not_asked") return opened.outcome;

  const { at: openedAt, body, until } = opened;
  const digest = digestOf(body);
  const request: OpenRequest = { requestId, runId: steps.runId, kind: "humanState", digest, body, openedAt };
  const received = await slot.withSlotReleased(() => awaitAnswer(execution, request, journal, until));
  // An answer may arrive while no process runs the run, after the deadline and before the run is resumed.
  const inTime = received === undefined || until === undefined || received.at <= until ? received : undefined;
  const record = (step: StepCall): AskOutcome => {
    if (inTime === undefined) {
      const isLate = until !== undefined && (received !== undefined || cancelReason(detours.signal) === undefined);
      const cause = isLate ? "timeout" : "cancelled";
      step.event(journal.event("request.expired", { requestId, cause }));
      return unanswered(cause);
    }
    const answer = readAnswer(inTime);
    step.event(journal.event("request.answered", { requestId, ...answeredByOf(answer, inTime) }));
    return outcomeOf(answer, digest, body);
  };
  // Whether a request that was not answered in time was cancelled is not in its records, so a replay does not decide that again.
  const decides = until === undefined || received !== undefined ? DECIDES : {};
  return await journal.run(stepNames.ask(name, "answer"), record, decides);
}

function outcomeOf(answer: JournaledAnswer, digest: string, body: JsonObject): AskOutcome {
  const { kind, value, reason, by } = answer;
  switch (kind) {
    case "none":
      return unanswered(reason === "timeout" ? "timeout" : "no_interactor");
    case "defer":
      return unanswered("deferred", reason);
    case "value": {
      if (value === undefined) return unanswered("invalid", "the answer has no value");
      if (answer.digest !== digest) return unanswered("invalid", "the answer was for another question");
      return valueFault(body, value) === undefined
        ? { answered: true, value, by }
        : unanswered("invalid", "the answer does not fit the question's schema");
    }
    default:
      return unanswered("denied", reason);
  }
}

function unanswered(cause: Extract<AskOutcome, { readonly answered: false }>["cause"], reason?: string): AskOutcome {
  return { answered: false, cause, ...(reason === undefined ? {} : { reason }) };
}
