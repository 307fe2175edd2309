import { hash } from "node:crypto";
import type { Json, JsonObject } from "../../base/json.ts";
import type { ApprovedBy, Authorization, CallUsage, Policy, SealedCall } from "../../gate/authorize-call.ts";
import { mayBeAnyLine } from "../../gate/decide.ts";
import { fileReach } from "../../gate/envelope.ts";
import type { Subject, ToolCall } from "../../gate/subjects.ts";
import type { AnswerProof } from "../../people/answer-proof.ts";
import type { Attempt } from "../attempt.ts";
import type { RecordedVerdict } from "./verdict.ts";

/** What the calls of one attempt share. */
export interface ToolCallContext {
  readonly attempt: Attempt;
  readonly policy: Policy;
  /** Notes of results for later calls of this attempt, such as the hashes of files that were read. */
  readonly notes: Record<string, Json>;
  /** Requests for grants that were neither denied nor consumed. */
  readonly openRequests: Set<string>;
}

/** A call that is not decided. */
export interface WaitingCall {
  readonly call: SealedCall;
  /** With this call. */
  readonly usage: CallUsage;
}
/** A call with its recorded verdict. */
export interface DecidedCall {
  readonly call: SealedCall;
  readonly verdict: RecordedVerdict;
  /** What the gate allows this process; absent if an earlier process decided. */
  readonly authorization?: Authorization | undefined;
  /** The request for a grant, if there was one. */
  readonly asked?: AskedCall;
}
export interface AskedCall {
  /** What the person was shown. */
  readonly body: JsonObject;
  readonly subjects: readonly Subject[];
  /** Absent if the run was cancelled first. */
  readonly answer: JournaledAnswer | undefined;
}
/** An answer as read from the journal. */
export interface JournaledAnswer {
  readonly kind: "approve" | "deny" | "defer" | "value" | "none";
  readonly reason: string | undefined;
  readonly value: Json | undefined;
  readonly digest: string | undefined;
  /** Who answered. */
  readonly by: string;
  readonly proof: AnswerProof | undefined;
}

/** An approved call, as its tool is told about it. */
export interface ApprovedCall {
  readonly call: SealedCall;
  readonly by: ApprovedBy;
  readonly subjects: readonly Subject[];
  readonly intent?: Json;
}

/** What a tool gets beside its input. */
export function toolCall(approved: ApprovedCall, of: ToolCallContext, signal: AbortSignal): ToolCall {
  const { call, by, subjects, intent } = approved;
  const { runId, executionId, attempt } = call.scope;
  const { policy, notes } = of;
  const { state, deps } = of.attempt.execution;
  const { atWork } = deps;
  const granted = by === "grant";
  // In mode allowlist, the session's list is the envelope of stages without one.
  const envelope = policy.envelope ?? (policy.mode === "allowlist" ? policy.allow : undefined);
  const before = { count: atWork.count, started: atWork.started };
  return {
    runId,
    executionId,
    attempt,
    proposalId: call.id,
    // The same on every execution of a call, and safe in an environment variable.
    idempotencyKey: hash("sha256", JSON.stringify([runId, executionId, attempt, call.id])).slice(0, 32),
    workspace: deps.workspace,
    signal,
    env: deps.env,
    notes,
    mayWrite: policy.scene.mayWrite,
    reach: {
      ...fileReach(granted ? undefined : envelope, call.tool),
      scratch: state.sandbox?.scratch ?? [],
      network: state.sandbox?.network === true,
      readOnly: deps.protectedPaths ?? [],
    },
    // A granted command line was approved as a whole.
    anyLine: granted || mayBeAnyLine(call.tool, envelope, subjects, deps),
    startsUnwalled: deps.answers.startsUnwalled,
    othersAtWork: () => before.count > 0 || atWork.started > before.started + 1,
    judged: subjects,
    ...(intent === undefined ? {} : { intent }),
  };
}
