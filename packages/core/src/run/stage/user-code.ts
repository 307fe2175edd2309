import { isSluiceError, messageOf } from "../../base/errors.ts";
import type { FailureCode } from "../../definition/result.ts";
import { cancelReason, type Limits, raceAbort } from "../limits/limits.ts";

// Types, not interfaces: they are recorded, and only types count as JSON to the compiler.

/** Why a hook gave no answer that counts. */
export type MissingAnswer =
  | { readonly kind: "failed"; readonly code: FailureCode; readonly message: string; readonly limit?: string }
  | { readonly kind: "cancelled"; readonly reason: string };
export type HookAnswer<T> = { readonly kind: "answered"; readonly value: T } | MissingAnswer;

/**
 * Asks code that is not ours, inside a step. It may throw, hang beyond a time cap, or be at work when the run is cancelled:
 * each of them is a value here, which names the code by `what`. What it returns is not looked at. Answers at once when that
 * code does.
 */
export function callUserCode(
  what: string,
  signal: AbortSignal,
  limits: Limits,
  ask: () => unknown,
): HookAnswer<unknown> | Promise<HookAnswer<unknown>> {
  try {
    const value = ask();
    // Most hooks answer at once: no race is set up for those.
    return isThenable(value) ? answerInTime(what, signal, limits, value) : { kind: "answered", value };
  } catch (thrown) {
    return threw(what, thrown);
  }
}

async function answerInTime(
  what: string,
  signal: AbortSignal,
  limits: Limits,
  value: unknown,
): Promise<HookAnswer<unknown>> {
  try {
    const ended = await limits.timed(signal, (timed) => raceAbort(timed, Promise.resolve(value)));
    if (ended !== undefined) return { kind: "answered", value: ended.value };
  } catch (thrown) {
    return threw(what, thrown);
  }
  const reason = cancelReason(signal);
  if (reason !== undefined) return { kind: "cancelled", reason };
  const hit = limits.late();
  return {
    kind: "failed",
    code: "timeout",
    message: `${hit?.message ?? "a time limit was passed"}; ${what} was at work`,
    ...(hit === undefined ? {} : { limit: hit.limit }),
  };
}

function threw(what: string, thrown: unknown): MissingAnswer {
  const message = isSluiceError(thrown) ? thrown.message : `${what} threw: ${messageOf(thrown)}`;
  return { kind: "failed", code: "hook", message };
}

function isThenable(value: unknown): boolean {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}
