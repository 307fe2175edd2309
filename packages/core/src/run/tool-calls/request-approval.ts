import { field, type Json, type JsonObject } from "../../base/json.ts";
import type { DenialCause } from "../../gate/denial.ts";
import type { OpenRequest, ReceivedSignal, StepCall } from "../../journal/seam.ts";
import { type CallGroupId, stepNames } from "../../journal/step-id.ts";
import { type AnswerProof, createSeal } from "../../people/answer-proof.ts";
import { needsCode, recordedProof, withVerdict } from "./answer-rule.ts";
import type { Authorizer } from "./authorize.ts";
import type { ProposedToolCall, ToolCallContext } from "./tool-call.ts";
import { decidesVerdict, type RecordedVerdict } from "./verdict.ts";

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
const UNPROVEN =
  "the answer came from another process without proof that a person gave it; a person has to answer in the terminal of the process that runs this, or elsewhere with the code shown there";
const KINDS: readonly JournaledAnswer["kind"][] = ["approve", "deny", "defer", "value", "none"];

/** Answers from other processes are untrusted: an unrecognised or unproven one is a denial. */
export function readAnswer({ payload, by }: ReceivedSignal): JournaledAnswer {
  const text = (key: string): string | undefined => {
    const value = field(payload, key);
    return typeof value === "string" ? value : undefined;
  };
  const given = text("kind");
  const kind = KINDS.find((known) => known === given);
  const proof = recordedProof(payload);
  const answer = { value: field(payload, "value"), digest: text("digest"), by, proof };
  if (kind === undefined) return { ...answer, kind: "deny", reason: "the answer could not be understood" };
  if (proof === "missing" && (kind === "approve" || kind === "value"))
    return { ...answer, kind: "deny", reason: UNPROVEN, value: undefined };
  return { ...answer, kind, reason: text("reason") ?? text("cause") };
}

/** Opens a request and waits for its answer without a concurrency slot. Undefined if the run is cancelled first. */
export async function requestApproval(of: ToolCallContext, request: OpenRequest): Promise<ReceivedSignal | undefined> {
  const { deps, steps } = of.execution;
  const { people, secrets, answers } = deps;
  const seal = createSeal({ ...request, incarnation: steps.incarnation }, () => needsCode(answers));
  people.offer(request, seal);
  // The proof covers the answer as it was given, so it is checked before secrets are masked.
  const clean = (payload: Json): Json => secrets.json(withVerdict(payload, seal, answers));
  try {
    return await of.slot.withSlotReleased(() => steps.waitForSignal(`request/${request.requestId}`, { clean }));
  } finally {
    people.withdraw(request.runId, request.requestId);
  }
}

/** Waits for the answers to a group's requests, in order, and records the final verdict on each call. */
export async function recordApprovals(
  of: ToolCallContext,
  authorizer: Authorizer,
  groupId: CallGroupId,
  group: readonly ProposedToolCall[],
  verdicts: readonly RecordedVerdict[],
): Promise<readonly RecordedVerdict[]> {
  const { grants, journal, execution } = of;
  const pending = group.flatMap(({ proposal }) => {
    const asking = verdicts.find(({ id, verdict }) => id === proposal.id && verdict.kind === "ask");
    return asking === undefined ? [] : [{ proposal, asking, requestId: grants.request(proposal) }];
  });
  const answers = new Map<string, ReceivedSignal>();
  for (const { proposal, asking, requestId } of pending) {
    const { argsDigest } = proposal;
    const received = await requestApproval(of, {
      requestId,
      runId: execution.steps.runId,
      kind: "grantStageTool",
      digest: argsDigest,
      body: asking.verdict.kind === "ask" ? asking.verdict.body : {},
      openedAt: execution.deps.clock.now(),
    });
    if (received !== undefined) answers.set(requestId, received);
  }
  // Tokens are never stored: each is minted here from the journaled answer, for the digest that the answer names.
  for (const { proposal, requestId } of pending) {
    const received = answers.get(requestId);
    if (received === undefined) continue;
    const { kind, digest } = readAnswer(received);
    const minted = grants.answer(requestId, { approve: kind === "approve", digest: digest ?? "" });
    // The journal accepts one answer, so an approval of another digest also closes the request.
    if (!minted) grants.answer(requestId, { approve: false, digest: proposal.argsDigest });
  }
  const settle = async (step: StepCall): Promise<RecordedVerdict[]> => {
    const final: RecordedVerdict[] = [];
    for (const { proposal, asking, requestId } of pending) {
      const received = answers.get(requestId);
      if (received === undefined) {
        final.push(authorizer.cancelled(asking, step));
        continue;
      }
      const answer = readAnswer(received);
      const { id: callId, argsDigest } = proposal;
      step.event(journal.event("grant.answered", { requestId, callId, ...answeredByOf(answer, received), argsDigest }));
      if (grants.stateOf(requestId) === "minted") final.push(await authorizer.granted(proposal, asking, step));
      else final.push(authorizer.refuse(asking, causeOf(answer), denialReason(answer), step));
    }
    return final;
  };
  const settled = await journal.run(stepNames.calls(groupId, "approvals"), settle, { decides: decidesVerdict });
  const byId = new Map(settled.map((verdict) => [verdict.id, verdict]));
  return verdicts.map((verdict) => byId.get(verdict.id) ?? verdict);
}

/** Event data that all answers have. */
export function answeredByOf({ kind, by, reason, proof }: JournaledAnswer, { at }: ReceivedSignal): JsonObject {
  return {
    answer: kind,
    by,
    answeredAt: at,
    ...(proof === undefined ? {} : { proof }),
    ...(reason === undefined ? {} : { reason }),
  };
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
