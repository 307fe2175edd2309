import { field, type Json, type JsonObject } from "../../base/json.ts";
import type { DenialCause } from "../../gate/denial.ts";
import type { OpenRequest, ReceivedSignal, StepCall } from "../../journal/seam.ts";
import { type AnswerProof, createSeal } from "../../people/answer-proof.ts";
import { needsCode, recordedProof, withVerdict } from "./answer-rule.ts";
import type { Authorizer } from "./authorize.ts";
import { type CallGroupId, callStep, type ProposedToolCall, type ToolCallContext } from "./tool-call.ts";
import { decidesVerdict, type RecordedVerdict } from "./verdict.ts";

/** An answer from the journal: what, by whom, about which digest, and what shows that a person gave it. */
export interface JournaledAnswer {
  readonly kind: "approve" | "deny" | "defer" | "value" | "none";
  readonly reason: string | undefined;
  readonly value: Json | undefined;
  readonly digest: string | undefined;
  readonly by: string;
  readonly proof: AnswerProof | undefined;
}
const UNPROVEN =
  "the answer came from another process, and nothing shows that a person gave it; a person answers in the terminal of the process that runs this, or from elsewhere with the code that it shows there";
const KINDS: readonly JournaledAnswer["kind"][] = ["approve", "deny", "defer", "value", "none"];

/** Answers from other processes may be anything: what is none of ours denies, and so does what nobody proved to be a person's. */
export function readAnswer({ payload, by }: ReceivedSignal): JournaledAnswer {
  const text = (key: string): string | undefined => {
    const value = field(payload, key);
    return typeof value === "string" ? value : undefined;
  };
  const asked = text("kind");
  const kind = KINDS.find((known) => known === asked);
  const proof = recordedProof(payload);
  const said = { value: field(payload, "value"), digest: text("digest"), by, proof };
  if (kind === undefined) return { ...said, kind: "deny", reason: "the answer could not be understood" };
  if (proof === "missing" && (kind === "approve" || kind === "value"))
    return { ...said, kind: "deny", reason: UNPROVEN, value: undefined };
  return { ...said, kind, reason: text("reason") ?? text("cause") };
}

/** Offers a request to whoever is there and waits, with the state's place given free. Undefined when the run was cancelled. */
export async function requestApproval(of: ToolCallContext, request: OpenRequest): Promise<ReceivedSignal | undefined> {
  const { deps, steps } = of.execution;
  const { people, secrets, answers } = deps;
  const seal = createSeal({ ...request, incarnation: steps.incarnation }, () => needsCode(answers));
  people.offer(request, seal);
  // Before what is secret is taken out of it: the proof is of the answer as it was given.
  const clean = (payload: Json): Json => secrets.json(withVerdict(payload, seal, answers));
  try {
    return await of.place.whileFree(() => steps.waitForSignal(`request/${request.requestId}`, { clean }));
  } finally {
    people.withdraw(request.runId, request.requestId);
  }
}

/** Waits for the answers to a group's requests, in order, and records the last word on each call. */
export async function recordApprovals(
  of: ToolCallContext,
  judge: Authorizer,
  at: CallGroupId,
  group: readonly ProposedToolCall[],
  judged: readonly RecordedVerdict[],
): Promise<readonly RecordedVerdict[]> {
  const { grants, journal, execution } = of;
  const asked = group.flatMap((proposed) => {
    const one = judged.find(({ id, verdict }) => id === proposed.proposal.id && verdict.kind === "ask");
    return one === undefined ? [] : [{ proposed, one, requestId: grants.request(proposed.proposal) }];
  });
  const answers = new Map<string, ReceivedSignal | undefined>();
  for (const { proposed, one, requestId } of asked) {
    const { proposal } = proposed;
    const request: OpenRequest = {
      requestId,
      runId: execution.steps.runId,
      kind: "grantStageTool",
      digest: proposal.argsDigest,
      body: one.verdict.kind === "ask" ? one.verdict.body : {},
      openedAt: execution.deps.clock.now(),
    };
    answers.set(requestId, await requestApproval(of, request));
  }
  // No token is kept as authority: it is minted here, from the journaled answer, and only for the digest it names.
  for (const { proposed, requestId } of asked) {
    const received = answers.get(requestId);
    if (received === undefined) continue;
    const { kind, digest } = readAnswer(received);
    const minted = grants.answer(requestId, { approve: kind === "approve", digest: digest ?? "" });
    // The journal takes one answer: one that was for something else closes the request all the same.
    if (!minted) grants.answer(requestId, { approve: false, digest: proposed.proposal.argsDigest });
  }
  const settle = async (step: StepCall): Promise<RecordedVerdict[]> => {
    const last: RecordedVerdict[] = [];
    for (const { proposed, one, requestId } of asked) {
      const received = answers.get(requestId);
      const callId = proposed.proposal.id;
      if (received === undefined) {
        last.push(judge.cancelled(one, step));
        continue;
      }
      const answer = readAnswer(received);
      const { argsDigest } = proposed.proposal;
      const said = { requestId, callId, ...answeredByOf(answer, received), argsDigest };
      step.event(journal.event("grant.answered", said));
      if (grants.stateOf(requestId) === "minted") last.push(await judge.granted(proposed, one, step));
      else last.push(judge.refuse(one, causeOf(answer), denialReason(answer), step));
    }
    return last;
  };
  const settled = await journal.run(callStep(at, "approvals"), settle, { decides: decidesVerdict });
  const byId = new Map(settled.map((one) => [one.id, one]));
  return judged.map((one) => byId.get(one.id) ?? one);
}

/** What the event of an answer says of it, whatever it answers. */
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
  if (kind === "defer") return "a person put the decision off: it is denied for now; go on another way";
  if (kind === "none") return reason === "timeout" ? "nobody answered in time" : "nobody is there to grant it";
  if (kind === "approve") return "the approval was for other arguments, so it does not cover this call";
  return reason === undefined ? `denied by ${by}` : `denied by ${by}: ${reason}`;
}
