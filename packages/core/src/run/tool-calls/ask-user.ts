import { digestOf } from "../../base/canonical.ts";
import { messageOf } from "../../base/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../../base/json.ts";
import type { AllowedCall } from "../../gate/authorize-call.ts";
import { visible } from "../../gate/summary.ts";
import type { OpenRequest, StepCall } from "../../journal/seam.ts";
import { type CallGroupId, questionId, stepNames } from "../../journal/step-id.ts";
import { valueFault } from "../../people/interactor.ts";
import { DECIDES } from "../attempt.ts";
import { answeredByOf, awaitAnswer, type JournaledAnswer, questionFault, readAnswer } from "../requests/answer.ts";
import { type ExecutableCall, type ExecutedCall, refusedCall } from "./execute-tool-call.ts";
import type { ToolCallContext } from "./tool-call.ts";

/** The record of a question step: the open request, or the result of a call that could not ask. */
type Opened =
  | { readonly kind: "open"; readonly at: number; readonly digest: string; readonly body: JsonObject }
  | { readonly kind: "not_asked"; readonly result: ExecutedCall };

/** Runs a call of effect `ask`: opens the request, waits for an answer and records it as the call's result. */
export async function askQuestion(
  of: ToolCallContext,
  groupId: CallGroupId,
  runnable: ExecutableCall,
): Promise<ExecutedCall> {
  const { journal, execution, slot } = of.attempt;
  const { steps, deps } = execution;
  const { id: callId, tool, scope } = runnable.call;
  const requestId = questionId(scope.executionId, scope.attempt, callId);
  const finished = (ran: ExecutedCall, step: StepCall): ExecutedCall => {
    const { outcome, ms } = ran;
    step.event(journal.event("call.finished", { callId, tool, outcome, ms }));
    return ran;
  };

  const opened = await journal.run(stepNames.calls(groupId, "question"), async (step): Promise<Opened> => {
    const unasked = (result: ExecutedCall): Opened => ({ kind: "not_asked", result: finished(result, step) });
    if (!deps.people.reachable()) {
      return unasked(none("no_interactor", `no one is available to answer; ${DECIDE}`));
    }
    const authorization = await runnable.authorize();
    if (authorization.kind !== "allow") return unasked(refusedCall(authorization, deps));
    try {
      const masked = deps.secrets.json(bodyOf(tool, authorization));
      const body = isJsonObject(masked) ? masked : {};
      const fault = questionFault(body);
      if (fault !== undefined) return unasked(none("tool_failed", `the question could not be asked: ${fault}`));
      const digest = digestOf(body);
      step.event(journal.event("request.opened", { requestId, kind: "askUser", digest, body }));
      return { kind: "open", at: deps.clock.now(), digest, body };
    } catch (thrown) {
      return unasked(none("tool_failed", `the question could not be asked: ${deps.secrets.text(messageOf(thrown))}`));
    }
  });
  if (opened.kind === "not_asked") return opened.result;

  const { at: openedAt, digest, body } = opened;
  const request: OpenRequest = { requestId, runId: steps.runId, kind: "askUser", digest, body, openedAt };
  const received = await slot.withSlotReleased(() => awaitAnswer(execution, request, journal));
  const answered = (step: StepCall): ExecutedCall => {
    if (received === undefined) {
      step.event(journal.event("request.expired", { requestId, cause: "cancelled" }));
      return finished(none("cancelled", "the run was cancelled before the question was answered"), step);
    }
    const answer = readAnswer(received);
    step.event(journal.event("request.answered", { requestId, ...answeredByOf(answer, received) }));
    const ran = resultOf(answer, opened);
    return finished({ ...ran, ms: Math.max(0, received.at - openedAt) }, step);
  };
  return await journal.run(stepNames.calls(groupId, "answer"), answered, DECIDES);
}

const DECIDE = "decide with what you know and state your assumption in the result";

function bodyOf(tool: string, { question }: AllowedCall): JsonObject {
  if (question === undefined) throw new TypeError(`${tool} returned no question`);
  return { tool, question: visible(question.question), answer: question.answer };
}

function resultOf(answer: JournaledAnswer, { digest, body }: Extract<Opened, { kind: "open" }>): ExecutedCall {
  const { kind, value, reason } = answer;
  if (kind === "none") return none(reason ?? "no_interactor", `no one answered; ${DECIDE}`);
  if (kind === "defer") return none("deferred", `the user deferred the answer; ${DECIDE}`);
  if (kind !== "value" || value === undefined)
    return none("not_answered", reason ?? "the user declined to answer this question");
  if (answer.digest !== digest) return none("answer_invalid", "the answer was for another question");
  if (valueFault(body, value) !== undefined)
    return none("answer_invalid", "the answer does not fit the question's schema");
  return { ok: true, output: value, outcome: "ok", ms: 0 };
}

function none(code: string, message: string): ExecutedCall {
  const output: Json = { code, message };
  return { ok: false, output, outcome: "error", ms: 0 };
}
