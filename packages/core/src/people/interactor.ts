import type { Json, JsonObject } from "../base/json.ts";

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
