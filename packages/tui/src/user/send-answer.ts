import {
  type Answer,
  checkAnswer,
  type Json,
  type JsonObject,
  type OpenRequest,
  type PersonRequest,
  parseJson,
  type RunHost,
  type SecretFilter,
  type SignalOutcome,
} from "@sluice/core";
import { rootOf } from "@sluice/view";

/** An answer as it was typed, or what is wrong with it. */
export type TypedAnswer =
  | { readonly ok: true; readonly answer: Answer }
  | { readonly ok: false; readonly fault: string };

/** Digits of a digest in a line to be pasted: more than anybody finds a second request for while the first one waits. */
const SHOWN_DIGITS = 16;

export function shortDigest(digest: string): string {
  return digest.slice(0, SHOWN_DIGITS);
}

/** The command that answers exactly this request, up to the answer itself. */
export function answerCommand({
  runId,
  requestId,
  digest,
}: Pick<OpenRequest, "runId" | "requestId" | "digest">): readonly string[] {
  return ["answer", rootOf(runId), requestId, "--digest", shortDigest(digest)];
}

/** A value as JSON where that fits the request, else as plain text. */
export function typedValue(request: PersonRequest, text: string): TypedAnswer {
  const json = parseJson(text);
  const tries: readonly Json[] = json.ok ? [json.value, text] : [text];
  let fault = "";
  for (const value of tries) {
    const checked = checkAnswer(request, { kind: "value", value });
    if (checked.ok) return checked;
    fault = checked.fault;
  }
  return { ok: false, fault };
}

/** What is sent to answer a request. The digest of what was looked at goes with it: an answer never covers anything else. */
export function answerPayload({ digest }: OpenRequest, answer: Answer): JsonObject {
  return { ...answer, digest };
}

/** Sends an answer to whoever owns the request's run. */
export async function sendAnswer(
  host: RunHost,
  { runId, requestId, digest }: OpenRequest,
  payload: JsonObject,
  by: string,
): Promise<SignalOutcome> {
  return await host.signal(runId, { name: `request/${requestId}`, payload, digest, by });
}

/** What `secrets` knows is not in what is sent: a store keeps it as it comes. */
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

/** What an accepted answer did, as a word. */
export function pastTense({ kind }: Answer): string {
  switch (kind) {
    case "approve":
      return "approved";
    case "deny":
      return "denied";
    case "defer":
      return "deferred";
    case "value":
      return "answered";
  }
}

/** Why an answer was not taken. */
export function refusalOf(outcome: Exclude<SignalOutcome, "accepted">, requestId: string): string {
  switch (outcome) {
    case "already_answered":
      return `not accepted: ${requestId} was answered already`;
    case "digest_mismatch":
      return `not accepted: ${requestId} is about something else by now; look again`;
    case "unknown":
      return `not accepted: ${requestId} is not open any more`;
  }
}
