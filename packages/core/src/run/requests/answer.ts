// How a run asks a person: the request is open in a record, the answer comes back as a signal.
import { field, type Json, type JsonObject } from "../../base/json.ts";
import type { OpenRequest, ReceivedSignal } from "../../journal/seam.ts";
import { type AnswerProof, createSeal } from "../../people/answer-proof.ts";
import type { Execution } from "../execution.ts";
import { needsCode, recordedProof, withVerdict } from "../tool-calls/answer-rule.ts";

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

export const UNPROVEN =
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

/**
 * Offers an open request and waits for its answer. A caller that holds a concurrency slot has to release it.
 * Undefined if the run is cancelled first.
 */
export async function awaitAnswer(
  { steps, deps }: Pick<Execution, "steps" | "deps">,
  request: OpenRequest,
): Promise<ReceivedSignal | undefined> {
  const { people, secrets, answers } = deps;
  const seal = createSeal({ ...request, incarnation: steps.incarnation }, () => needsCode(answers));
  people.offer(request, seal);
  // The proof covers the answer as it was given, so it is checked before secrets are masked.
  const clean = (payload: Json): Json => secrets.json(withVerdict(payload, seal, answers));
  try {
    return await steps.waitForSignal(`request/${request.requestId}`, { clean });
  } finally {
    people.withdraw(request.runId, request.requestId);
  }
}
