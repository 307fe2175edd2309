import { messageOf } from "../base/errors.ts";
import { field, isJson, isJsonObject, type Json, type JsonObject, toJsonValue } from "../base/json.ts";
import { compileJsonSchema } from "../schema/json-schema.ts";

/** Something a run asks of people. */
export interface PersonRequest {
  /** Unique in its run. */
  readonly requestId: string;
  readonly runId: string;
  readonly kind: "grantStageTool" | "approveTransition" | "askUser" | "humanState";
  /** Digest of what the request is about. */
  readonly digest: string;
  /** What is asked. `askUser` and `humanState` hold the JSON Schema of the answer in `answer`. */
  readonly body: JsonObject;
  /** Epoch milliseconds. */
  readonly openedAt: number;
}

export type Answer =
  | { readonly kind: "approve" }
  | { readonly kind: "deny"; readonly reason?: string }
  /** Not now: denied for the moment, or left open where the run waits. */
  | { readonly kind: "defer" }
  | { readonly kind: "value"; readonly value: Json };

/** What closes a request: an answer, or that none came. */
export type Resolution = Answer | { readonly kind: "none"; readonly cause: "no_interactor" | "timeout" };

/** Somebody who can answer: a screen, a rule, a person elsewhere. */
export interface Interactor {
  /** Recorded as who answered. */
  readonly name: string;
  /**
   * Undefined means no opinion: others may answer. The signal aborts when the request is settled by anybody else, has expired
   * or the queue is closed; an answer given later is dropped.
   */
  answer(request: PersonRequest, signal: AbortSignal): Promise<Answer | undefined>;
}

/** An interactor that is one function: a rule, a test, a bridge to somewhere else. */
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
 * Whether this answers that request. Requests for leave take approve, deny and defer; questions take a value that fits their
 * schema, deny and defer. The answer returned is a copy with nothing else in it.
 */
export function checkAnswer(request: PersonRequest, given: unknown): CheckedAnswer {
  const own = toJsonValue(given);
  if (!own.ok) return refused(`the answer is not JSON: ${own.fault}`);
  const answer = own.value;
  if (!isJson(answer) || !isJsonObject(answer)) return refused("an answer is an object with a kind");
  const kind = field(answer, "kind");
  switch (kind) {
    case "defer":
      return { ok: true, answer: { kind } };
    case "deny":
      return denied(field(answer, "reason"));
    case "approve":
      return isQuestion(request)
        ? refused(`${request.kind} asks for a value, not for leave`)
        : { ok: true, answer: { kind } };
    case "value":
      return isQuestion(request)
        ? valued(request, field(answer, "value"))
        : refused(`${request.kind} takes approve, deny or defer`);
    default:
      return refused(`${JSON.stringify(kind) ?? "nothing"} is no kind of answer: approve, deny, defer or value`);
  }
}

function isQuestion({ kind }: PersonRequest): boolean {
  return kind === "askUser" || kind === "humanState";
}

function denied(reason: Json | undefined): CheckedAnswer {
  if (reason === undefined) return { ok: true, answer: { kind: "deny" } };
  return typeof reason === "string"
    ? { ok: true, answer: { kind: "deny", reason } }
    : refused("the reason of a denial is text");
}

function valued(request: PersonRequest, value: Json | undefined): CheckedAnswer {
  if (value === undefined) return refused("the answer holds no value");
  const schema = field(request.body, "answer");
  // A question without a schema takes anything; one whose schema cannot be read takes nothing.
  if (schema === undefined) return { ok: true, answer: { kind: "value", value } };
  if (!isJsonObject(schema)) return refused("the request's schema is not JSON Schema");
  try {
    const verdict = compileJsonSchema<Json>(schema)(value);
    if (verdict.ok) return { ok: true, answer: { kind: "value", value } };
    return refused(verdict.issues.map(({ path, message }) => `${path}: ${message}`).join("; "));
  } catch (thrown) {
    return refused(`the request's schema cannot be used: ${messageOf(thrown)}`);
  }
}

function refused(fault: string): CheckedAnswer {
  return { ok: false, fault };
}
