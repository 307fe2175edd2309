import type { ProviderFaultPolicy } from "@sluice/core";
import type { ModelFailure } from "./reply/reply.ts";

/** No wait between two calls is longer, unless the provider asks for it; no suspended run is due sooner. */
const LONGEST_WAIT_MS = 60_000;

/** Calls that a provider can ask for without a wait before each; afterwards it would be called as fast as it answers. */
const MOST_AT_ONCE = 5;

/** Failures that no wait ends, but a person or a billing period does, so that the run can continue afterwards. */
const WAITS_FOR_A_PERSON: ReadonlySet<string> = new Set([
  "unauthorized",
  "payment_required",
  "forbidden",
  "quota_exhausted",
  "missing_key",
  "missing_setting",
  "html_response",
]);

/** What follows a failed model call, as its record says, so that a resume with other settings does the same. */
export type AfterFailure =
  | { readonly kind: "retry"; readonly until: number }
  /** The next model of the stage takes its place. */
  | { readonly kind: "fallback" }
  | { readonly kind: "suspend"; readonly retryAt?: number }
  | { readonly kind: "fail" };

/** The failed calls of one model in a row. */
export interface FailedCalls {
  /** With the last one. */
  readonly count: number;
  /** When the first one failed, in epoch milliseconds. */
  readonly since: number;
}

/** Whether the same call may succeed after a wait. */
export function mayRetry({ kind }: ModelFailure): boolean {
  return kind === "transient" || kind === "cut_stream";
}

/** Whether the provider is at fault, or the account with it, and not the request. */
function isProviderFault(error: ModelFailure): boolean {
  return mayRetry(error) || WAITS_FOR_A_PERSON.has(error.code);
}

/** Decides what follows a failed call at the time `now`. */
export function afterFailure(
  error: ModelFailure,
  { count, since }: FailedCalls,
  { retry, onProviderFault }: ProviderFaultPolicy,
  { now, hasFallback }: { readonly now: number; readonly hasFallback: boolean },
): AfterFailure {
  if (error.kind === "aborted") return { kind: "fail" };
  // A quota that is whole again soon is worth the wait; another model is better than one for a model that is overloaded.
  const isShort = error.code === "quota_exhausted" && error.retryAfterMs !== undefined;
  const retries = (mayRetry(error) || isShort) && !(hasFallback && error.code === "overloaded");
  const left = since + retry.maxElapsedMs - now;
  if (retries && count < retry.maxAttempts && left > 0) {
    const own = Math.min(retry.initialMs * retry.factor ** (count - 1), LONGEST_WAIT_MS, left);
    const least = count > MOST_AT_ONCE ? retry.initialMs : 0;
    const wait = error.retryAfterMs === undefined ? own : Math.max(error.retryAfterMs, least);
    if (wait <= left) return { kind: "retry", until: Math.ceil(now + wait) };
  }
  const isFault = isProviderFault(error);
  if (hasFallback && (isFault || error.code === "not_found")) return { kind: "fallback" };
  if (!isFault || onProviderFault === "fail") return { kind: "fail" };
  const waitMs = error.retryAfterMs ?? error.resetAfterMs;
  if (waitMs === undefined) return { kind: "suspend" };
  return { kind: "suspend", retryAt: Math.ceil(now + Math.max(waitMs, LONGEST_WAIT_MS)) };
}
