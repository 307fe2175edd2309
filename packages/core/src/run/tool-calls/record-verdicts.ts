import { SluiceError } from "../../base/errors.ts";
import { type Json, strictClone } from "../../base/json.ts";
import {
  type AllowedCall,
  type Authorization,
  authorizeCall,
  type Policy,
  type SealedCall,
} from "../../gate/authorize-call.ts";
import { type DenialCause, denial } from "../../gate/denial.ts";
import { argsSummary } from "../../gate/summary.ts";
import { type CallUsage, countAllowed, countCall } from "../../gate/usage.ts";
import { maskSecrets, redactJson, type SecretFilter } from "../../journal/redaction.ts";
import type { RecordedOutcome, StepCall } from "../../journal/seam.ts";
import { type CallGroupId, stepIds, stepNames } from "../../journal/step-id.ts";
import { raceAbort } from "../limits/limits.ts";
import { toolCall } from "./execute-tool-call.ts";
import type { DecidedCall, ToolCallContext } from "./tool-call.ts";
import {
  type CallVerdict,
  decidesVerdict,
  isUndecided,
  type RecordedVerdict,
  verdictsIn,
  worldLimitOf,
} from "./verdict.ts";

/**
 * Decides about a group of calls in one step. The record says which calls the group holds: after a resume, it may be another number
 * of the `waiting` calls, since the effects of tools may have changed.
 */
export async function recordVerdicts(
  of: ToolCallContext,
  groupId: CallGroupId,
  group: readonly SealedCall[],
  waiting: readonly SealedCall[],
): Promise<readonly DecidedCall[]> {
  const { journal, execution } = of.attempt;
  const decidedHere: DecidedCall[] = [];
  const before = of.attempt.used.calls;
  const decide = async (step: StepCall): Promise<RecordedVerdict[]> => {
    let usage = before;
    for (const call of group) {
      usage = countCall(usage, call);
      const recorded = step.recorded && verdictIn(step.recorded, call.id, call.tool);
      const late = recorded === undefined ? of.attempt.limits.exceeded()?.message : worldLimitOf(recorded);
      const again = recorded && { subjects: recorded.subjects, edits: recorded.edits ?? [] };
      const policy: Policy = { ...of.policy, usage, late, ...again };
      const settled = await settleCall(of, call, step, recorded, () => authorizeCall(call, policy));
      decidedHere.push({ ...settled, usage });
      usage = counted(usage, settled.verdict);
    }
    return decidedHere.map(({ verdict }) => verdict);
  };
  const recorded = await journal.run(stepNames.calls(groupId, "verdicts"), decide, { decides: decidesVerdict });
  let usage = before;
  return recorded.map((verdict, index): DecidedCall => {
    const call = waiting[index];
    if (call?.id !== verdict.id || call.tool !== verdict.tool) {
      const where = `${execution.steps.runId}, turn ${groupId.turn}`;
      throw new SluiceError(
        "Host",
        "journal_mismatch",
        `${where}: the journal has a verdict on another call, ${verdict.id} of ${verdict.tool}`,
      );
    }
    const here = decidedHere[index];
    if (here !== undefined) return { ...here, verdict };
    const made = countCall(usage, call);
    usage = counted(made, verdict);
    return { call, verdict, usage: made };
  });
}

/** A call that waits for a person counts as one that may run. */
function counted(usage: CallUsage, { verdict, edits }: RecordedVerdict): CallUsage {
  return verdict.kind === "refused" ? usage : countAllowed(usage, edits);
}

/** A call with what its step records, and with what the gate allows this process. */
export type SettledCall = Pick<DecidedCall, "call" | "verdict" | "authorization">;

/** What a step records of one call: with the intent of an allowed one, and with the events of the verdict. `before` as in a replay. */
export async function settleCall(
  of: ToolCallContext,
  call: SealedCall,
  step: StepCall,
  before: RecordedVerdict | undefined,
  authorize: () => Promise<Authorization>,
): Promise<SettledCall> {
  const { id, tool } = call;
  const { journal, execution } = of.attempt;
  // The run's signal, since creating a signal for the step costs more than a verdict.
  const { signal } = execution.detours;
  const work = async () => {
    const authorization = await authorize();
    // After a cancel nothing waits for this any more.
    if (authorization.kind !== "allow" || signal.aborted) return { authorization, intent: undefined };
    if (before !== undefined || authorization.prepare === undefined) return { authorization, intent: before?.intent };
    return { authorization, intent: await intentOf(of, call, authorization, authorization.prepare) };
  };
  const settled = await raceAbort(signal, work());
  if (settled === undefined) return cancelledCall(of, call, step);
  const { authorization, intent } = settled.value;
  const { subjects } = authorization;
  const { edits } = authorization.kind === "deny" ? NO_EDITS : authorization;
  // A replay of a record without the digest has to find the same verdict.
  const about = before !== undefined && before.argsDigest === undefined ? {} : { argsDigest: call.argsDigest };
  const facts = { id, tool, ...about, subjects, ...(edits === undefined ? {} : { edits }) };
  if (authorization.kind === "prompt") {
    const requestId = requestIdOf(call);
    const { body, digest, why } = authorization;
    // The model knows no secret, so the tool's schema added it.
    if (hasSecret(body.input, execution.deps.secrets))
      return deniedCall(of, call, step, "limit", SECRET_INPUT, subjects);
    step.event(journal.event("grant.requested", { requestId, kind: "grantStageTool", digest, body }));
    const reachable = before === undefined ? execution.deps.people.reachable() : !isUndecided(before);
    if (reachable) return { call, authorization, verdict: { ...facts, verdict: verdictOf(authorization) } };
    // If no one can answer, the same record closes the request.
    const answered = { requestId, callId: id, answer: "none", cause: "no_interactor", by: "headless" };
    step.event(journal.event("grant.answered", answered));
    return deniedCall(of, call, step, "no_interactor", `no one is available to approve this call: ${why}`, subjects);
  }
  if (authorization.kind === "deny" && authorization.vetoed !== undefined) {
    const { hook, reason } = authorization.vetoed;
    const vetoed = { callId: id, tool, hook, reason: execution.deps.secrets.text(reason) };
    step.event(journal.event("hook.vetoed", vetoed));
  }
  const verdict = { ...facts, verdict: verdictOf(authorization), ...(intent === undefined ? {} : { intent }) };
  return { ...finalVerdict(of, call, step, verdict), authorization };
}

const SECRET_INPUT =
  "this call needs approval, and the tool's schema adds a known secret to its input, which a request cannot show; the tool can read the secret when it runs";

function hasSecret(input: Json = null, secrets: SecretFilter): boolean {
  return secrets.json(input) !== input;
}

const NO_EDITS: Pick<RecordedVerdict, "edits"> = {};

/** A call that a person's answer, or its lack, denies. */
export function deniedCall(
  of: ToolCallContext,
  call: SealedCall,
  step: StepCall,
  cause: DenialCause,
  reason: string,
  subjects: RecordedVerdict["subjects"] = [],
): SettledCall {
  const { id, tool } = call;
  const output = denial(cause, tool, reason, of.policy.alternatives);
  return finalVerdict(of, call, step, { id, tool, subjects, verdict: { kind: "refused", cause, output } });
}

/** A call that was not decided before the run was cancelled. */
export function cancelledCall(of: ToolCallContext, call: SealedCall, step: StepCall): SettledCall {
  const { id, tool } = call;
  const output = { code: "call_not_run", message: "the run was cancelled before this call was decided" };
  return finalVerdict(of, call, step, { id, tool, subjects: [], verdict: { kind: "refused", output } });
}

/** Masks a verdict that is not a question any more, and adds its event. An approval holds no text of others. */
function finalVerdict(of: ToolCallContext, call: SealedCall, step: StepCall, recorded: RecordedVerdict): SettledCall {
  const { journal, execution } = of.attempt;
  const verdict =
    recorded.verdict.kind === "approved" ? recorded.verdict : maskSecrets(recorded.verdict, execution.deps.secrets);
  const { id, tool, argsDigest, input } = call;
  // Redacts before summarising, since redaction recognises secrets by their keys.
  const about = { callId: id, tool, argsDigest, args: argsSummary(tool, redactJson(input ?? null)) };
  if (verdict.kind === "approved") {
    step.event(journal.event("call.decided", { ...about, verdict: "approved", by: verdict.by }));
  } else if (verdict.kind === "refused") {
    const cause = verdict.cause === undefined ? {} : { cause: verdict.cause };
    step.event(journal.event("call.decided", { ...about, verdict: "refused", ...cause, result: verdict.output }));
  }
  return { call, verdict: { ...recorded, verdict } };
}

/** The intent to record before a writing call runs. Without one, the outcome of a call that is interrupted is unknown. */
async function intentOf(
  of: ToolCallContext,
  call: SealedCall,
  allowed: AllowedCall,
  prepare: NonNullable<AllowedCall["prepare"]>,
): Promise<Json | undefined> {
  try {
    const intent = await prepare(toolCall({ ...allowed, call }, of, of.attempt.execution.detours.signal));
    const own = strictClone(intent);
    return own.ok ? of.attempt.execution.deps.secrets.json(own.value) : undefined;
  } catch {
    return undefined;
  }
}

/** `plan#1/a1/t1.c0` */
export function requestIdOf({ scope, id }: SealedCall): string {
  return stepIds.inAttempt(scope.executionId, scope.attempt, id);
}

const UNKNOWN: Pick<RecordedVerdict, "verdict" | "subjects"> = {
  verdict: { kind: "approved", by: "envelope" },
  subjects: [],
};

/** The verdict on a call in a step that is replayed, or an approval without subjects if there is none. */
export function verdictIn(recorded: RecordedOutcome, id: string, tool: string): RecordedVerdict {
  return verdictsIn(recorded).find((one) => one.id === id) ?? { id, tool, ...UNKNOWN };
}

/** The verdict to record of what the gate decided. */
function verdictOf(authorization: Authorization): CallVerdict {
  switch (authorization.kind) {
    case "allow":
      return { kind: "approved", by: authorization.by };
    case "prompt":
      return { kind: "ask", body: authorization.body };
    case "deny": {
      const { cause, output, stuck } = authorization;
      return { kind: "refused", ...(cause && { cause }), output, ...(stuck && { stuck }) };
    }
  }
}
