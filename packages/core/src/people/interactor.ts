import { messageOf } from "../base/errors.ts";
import { field, isJson, isJsonObject, type Json, type JsonObject, toJsonValue } from "../base/json.ts";
import { compileJsonSchema } from "../schema/json-schema.ts";

/** A run's request to a person. */
export interface PersonRequest {
  /** Unique in its run. */
  readonly requestId: string;
  readonly runId: string;
  readonly kind: "grantStageTool" | "approveTransition" | "askUser" | "humanState";
  /** Digest of the subject of the request, which an answer has to name. */
  readonly digest: string;
  /** `askUser` and `humanState` have the JSON Schema of the answer in `answer`. */
  readonly body: JsonObject;
  /** Epoch milliseconds. */
  readonly openedAt: number;
}

export type Answer =
  | { readonly kind: "approve" }
  | { readonly kind: "deny"; readonly reason?: string }
  /** Denied for now, or left open if the run waits. */
  | { readonly kind: "defer" }
  | { readonly kind: "value"; readonly value: Json };

/** What closes a request. */
export type Resolution = Answer | { readonly kind: "none"; readonly cause: "no_interactor" | "timeout" };

/** Answers requests: a screen, a rule, a bridge to another service. */
export interface Interactor {
  /** Recorded with the answer. */
  readonly name: string;
  /** It only watches: a request that no other answers counts as unanswered while this interactor has it. */
  readonly observes?: true;
  /**
   * Undefined means no opinion: others may answer. The signal aborts when another answer settles the request, it expires or the
   * queue is closed; a later answer is ignored.
   */
  answer(request: PersonRequest, signal: AbortSignal): Promise<Answer | undefined>;
}

/** An interactor from one function. */
export function callbackInteractor(
  name: string,
  answer: (request: PersonRequest, signal: AbortSignal) => Answer | undefined | Promise<Answer | undefined>,
): Interactor {
  return { name, answer: async (request, signal) => answer(request, signal) };
}

export type CheckedAnswer =
  | { readonly ok: true; readonly answer: Answer }
  | { readonly ok: false; readonly fault: string };

/**
 * Validates an answer to a request. Approvals take approve, deny and defer; questions take a value that fits their schema, deny and
 * defer. Returns a copy without other fields.
 */
export function checkAnswer(request: PersonRequest, given: unknown): CheckedAnswer {
  const own = toJsonValue(given);
  if (!own.ok) return refused(`the answer is not JSON: ${own.fault}`);
  const answer = own.value;
  if (!isJson(answer) || !isJsonObject(answer)) return refused("an answer must be an object with a kind");
  const kind = field(answer, "kind");
  switch (kind) {
    case "defer":
      return { ok: true, answer: { kind } };
    case "deny":
      return denied(field(answer, "reason"));
    case "approve":
      return isQuestion(request)
        ? refused(`${request.kind} takes a value, deny or defer`)
        : { ok: true, answer: { kind } };
    case "value":
      return isQuestion(request)
        ? valued(request, field(answer, "value"))
        : refused(`${request.kind} takes approve, deny or defer`);
    default:
      return refused(`${JSON.stringify(kind) ?? "nothing"} is not a kind of answer: approve, deny, defer or value`);
  }
}

/** Whether a request takes a value instead of an approval. */
export function isQuestion({ kind }: { readonly kind: string }): boolean {
  return kind === "askUser" || kind === "humanState";
}

function denied(reason: Json | undefined): CheckedAnswer {
  if (reason === undefined) return { ok: true, answer: { kind: "deny" } };
  return typeof reason === "string"
    ? { ok: true, answer: { kind: "deny", reason } }
    : refused("the reason of a denial must be text");
}

function valued(request: PersonRequest, value: Json | undefined): CheckedAnswer {
  if (value === undefined) return refused("the answer has no value");
  const fault = valueFault(request.body, value);
  return fault === undefined ? { ok: true, answer: { kind: "value", value } } : refused(fault);
}

/** Why a value does not answer a question, if it does not. One without a schema takes any value; one with an invalid schema takes none. */
export function valueFault(question: JsonObject, value: Json): string | undefined {
  const schema = field(question, "answer");
  if (schema === undefined) return undefined;
  if (!isJsonObject(schema)) return "the request's schema is not JSON Schema";
  try {
    const verdict = compileJsonSchema<Json>(schema)(value);
    return verdict.ok ? undefined : verdict.issues.map(({ path, message }) => `${path}: ${message}`).join("; ");
  } catch (thrown) {
    return `the request's schema is invalid: ${messageOf(thrown)}`;
  }
}

function refused(fault: string): CheckedAnswer {
  return { ok: false, fault };
}
