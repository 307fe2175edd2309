import {
  type Answer,
  type Json,
  type JsonObject,
  type OpenRequest,
  type PersonRequest,
  parseJson,
  type RunHost,
  type SignalOutcome,
} from "@sluice/core";
import { checkAnswer, isQuestion, numberField, rootRunId, type SecretFilter } from "@sluice/core/runtime";

/** A typed answer, or what is wrong with it. */
export type TypedAnswer =
  | { readonly ok: true; readonly answer: Answer }
  | { readonly ok: false; readonly fault: string };

/** Digits of a digest in a command line: too many to find a second request with the same ones. */
const SHOWN_DIGITS = 16;

export function shortDigest(digest: string): string {
  return digest.slice(0, SHOWN_DIGITS);
}

/** The arguments of `sluice` that answer exactly this request, without the answer itself. */
export function answerCommand({
  runId,
  requestId,
  digest,
}: Pick<OpenRequest, "runId" | "requestId" | "digest">): readonly string[] {
  return ["answer", rootRunId(runId), requestId, "--digest", shortDigest(digest)];
}

/** The same with an answer to complete. `proof` is what proves that a person gives it. */
export function answerWords(request: OpenRequest, proof: readonly string[]): readonly string[] {
  return [...answerCommand(request), ...proof, ...(isQuestion(request) ? ["--value", "…"] : ["approve"])];
}

/** The text as JSON if that fits the request, else as a string. */
export function typedValue(request: PersonRequest, text: string): TypedAnswer {
  const json = parseJson(text);
  const candidates: readonly Json[] = json.ok ? [json.value, text] : [text];
  let fault = "";
  for (const value of candidates) {
    const checked = checkAnswer(request, { kind: "value", value });
    if (checked.ok) return checked;
    fault = checked.fault;
  }
  return { ok: false, fault };
}

/** The payload of an answer; with the digest, it cannot answer a request with other content. */
export function answerPayload({ digest }: OpenRequest, answer: Answer): JsonObject {
  return { ...answer, digest };
}

/** Sends an answer to the process that owns the request's run. */
export async function sendAnswer(
  host: RunHost,
  { runId, requestId, digest, body }: OpenRequest,
  payload: JsonObject,
  by: string,
): Promise<SignalOutcome> {
  const until = numberField(body, "until");
  const message = { name: `request/${requestId}`, payload, digest, by, ...(until === undefined ? {} : { until }) };
  return await host.signal(runId, message);
}

/** Masks known secrets in an answer, which a store keeps verbatim. */
export function maskAnswer(answer: Answer, secrets: SecretFilter): Answer {
  switch (answer.kind) {
    case "value":
      return { kind: "value", value: secrets.json(answer.value) };
    case "deny":
      return answer.reason === undefined ? answer : { kind: "deny", reason: secrets.text(answer.reason) };
    case "approve":
    case "defer":
      return answer;
  }
}

export function pastTense({ kind }: Answer): string {
  return { approve: "approved", deny: "denied", defer: "deferred", value: "answered" }[kind];
}

export function refusalOf(outcome: Exclude<SignalOutcome, "accepted">, requestId: string): string {
  switch (outcome) {
    case "already_answered":
      return `not accepted: ${requestId} was already answered`;
    case "digest_mismatch":
      return `not accepted: the content of ${requestId} changed; look again`;
    case "unknown":
      return `not accepted: ${requestId} is no longer open`;
    case "expired":
      return `not accepted: the deadline of ${requestId} has passed`;
  }
}
