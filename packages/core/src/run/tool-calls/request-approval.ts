import { type Authorization, authorizeCall, type Policy, type SealedCall } from "../../gate/authorize-call.ts";
import type { DenialCause } from "../../gate/denial.ts";
import { compileEnvelope } from "../../gate/envelope.ts";
import type { OpenRequest, ReceivedSignal, StepCall } from "../../journal/seam.ts";
import { type CallGroupId, stepNames } from "../../journal/step-id.ts";
import { cancelReason } from "../limits/limits.ts";
import { answeredByOf, awaitAnswer, type JournaledAnswer, readAnswer, UNPROVEN } from "../requests/answer.ts";
import { cancelledCall, deniedCall, requestIdOf, type SettledCall, settleCall, verdictIn } from "./record-verdicts.ts";
import type { AskedCall, DecidedCall, ToolCallContext } from "./tool-call.ts";
import { decidesVerdict, type RecordedVerdict, worldLimitOf } from "./verdict.ts";

/** Waits for the answers to a group's requests, in order, and records the final verdict on each call. */
export async function recordApprovals(
  of: ToolCallContext,
  groupId: CallGroupId,
  group: readonly DecidedCall[],
): Promise<readonly DecidedCall[]> {
  const { journal, execution, slot } = of.attempt;
  const asking = group.flatMap(({ call, verdict: { verdict, subjects, edits }, usage, authorization }) =>
    verdict.kind === "ask"
      ? [{ call, requestId: requestIdOf(call), usage, authorization, body: verdict.body, subjects, edits }]
      : [],
  );
  for (const { requestId } of asking) of.openRequests.add(requestId);
  const answered: AnsweredCall[] = [];
  for (const one of asking) {
    const { call, requestId, body } = one;
    const request: OpenRequest = {
      requestId,
      runId: execution.steps.runId,
      kind: "grantStageTool",
      digest: call.argsDigest,
      body,
      openedAt: execution.deps.clock.now(),
    };
    const received = await slot.withSlotReleased(() => awaitAnswer(execution, request, journal));
    const answer = received && readAnswer(received);
    answered.push({ ...one, answer, received });
    // The journal accepts one answer, so an approval of another digest closes the request too.
    if (answer !== undefined && !approves(answer, call)) of.openRequests.delete(requestId);
  }
  const settledHere: SettledCall[] = [];
  const settle = async (step: StepCall): Promise<RecordedVerdict[]> => {
    for (const one of answered) settledHere.push(await settleAnswer(of, one, step));
    return settledHere.map(({ verdict }) => verdict);
  };
  const options = { decides: decidesVerdict };
  const settled = await journal.run(stepNames.calls(groupId, "approvals"), settle, options);
  return group.map((decided) => {
    const index = answered.findIndex(({ call }) => call === decided.call);
    const [asked, verdict] = [answered[index], settled[index]];
    if (asked === undefined || verdict?.id !== decided.call.id) return decided;
    return { ...decided, verdict, authorization: settledHere[index]?.authorization, asked };
  });
}

interface AnsweredCall extends AskedCall, Pick<DecidedCall, "call" | "usage" | "authorization"> {
  readonly requestId: string;
  readonly received: ReceivedSignal | undefined;
}

function approves({ kind, digest }: JournaledAnswer, { argsDigest }: SealedCall): boolean {
  return kind === "approve" && digest === argsDigest;
}

async function settleAnswer(of: ToolCallContext, asked: AnsweredCall, step: StepCall): Promise<SettledCall> {
  const { journal, execution } = of.attempt;
  const { call, requestId, usage, authorization, subjects, answer, received } = asked;
  const { id: callId, tool, argsDigest } = call;
  if (answer === undefined || received === undefined) return cancelledCall(of, call, step);
  step.event(journal.event("grant.answered", { requestId, callId, ...answeredByOf(answer, received), argsDigest }));
  if (!approves(answer, call)) return deniedCall(of, call, step, causeOf(answer), denialReason(answer));
  if (cancelReason(execution.detours.signal) !== undefined) return cancelledCall(of, call, step);
  const before = step.recorded && verdictIn(step.recorded, callId, tool);
  const limit = before && worldLimitOf(before);
  if (limit !== undefined) return deniedCall(of, call, step, "limit", limit, subjects);
  return await settleCall(of, call, step, before, () =>
    before === undefined ? authorizeGranted(of, { call, usage }, asked, authorization) : replayGranted(of, call, asked),
  );
}

/** A call by its journaled answer, which is all that an approval is made of. */
export async function authorizeGranted(
  of: ToolCallContext,
  { call, usage }: Pick<DecidedCall, "call" | "usage">,
  { subjects, edits, body, answer }: AskedCall,
  authorization: Authorization | undefined,
): Promise<Authorization> {
  const here = authorization?.kind === "prompt" ? authorization : undefined;
  const prompt =
    here ?? (await authorizeCall(call, { ...of.policy, usage }, { kind: "prompt", body, subjects, edits }));
  if (prompt.kind !== "prompt") return prompt;
  return await prompt.granted({ approve: answer?.kind === "approve", digest: answer?.digest ?? "" }, body);
}

/** The same in a replay, which asks the guard hooks alone: what else could deny the call was compared before the answer. */
async function replayGranted(
  of: ToolCallContext,
  call: SealedCall,
  { subjects, edits }: AskedCall,
): Promise<Authorization> {
  const policy: Policy = { ...of.policy, envelope: compileEnvelope([]), subjects: [], limits: undefined };
  const prompt = await authorizeCall(call, policy);
  if (prompt.kind !== "prompt") return prompt;
  const granted = await prompt.granted({ approve: true, digest: prompt.digest }, prompt.body);
  return granted.kind === "allow" && edits !== undefined ? { ...granted, subjects, edits } : { ...granted, subjects };
}

function causeOf({ kind, reason }: JournaledAnswer): DenialCause {
  if (kind === "defer") return "deferred";
  if (kind === "none") return reason === "timeout" ? "timeout" : "no_interactor";
  return "denied";
}

function denialReason({ kind, reason, by, proof }: JournaledAnswer): string {
  if (proof === "missing" && reason === UNPROVEN) return reason;
  if (kind === "defer") return "the user deferred this request, so it is denied for now; continue without it";
  if (kind === "none")
    return reason === "timeout" ? "no one answered in time" : "no one is available to approve this call";
  if (kind === "approve") return "the approval was for different arguments and does not cover this call";
  return reason === undefined ? `denied by ${by}` : `denied by ${by}: ${reason}`;
}
