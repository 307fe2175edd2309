import { expect, test } from "vitest";
import { afterFailure } from "../../packages/stages/src/models/provider-faults.ts";
import { failureOf } from "../../packages/stages/src/models/reply/failure.ts";

// What a provider asks for is data of a stranger: it cannot make a run wait for ever, or call as fast as it can.

const NOW = Date.UTC(2026, 10, 21, 10);
const date = "Sat, 21 Nov 2026 10:00:00 GMT";
const POLICY = {
  onProviderFault: "suspend" as const,
  retry: { maxAttempts: Number.POSITIVE_INFINITY, maxElapsedMs: 300_000, initialMs: 1_000, factor: 2 },
};

function refused(responseHeaders: Readonly<Record<string, string>>, data?: unknown) {
  const error = { name: "AI_APICallError", statusCode: 503, responseHeaders, data, isRetryable: true };
  return failureOf(Object.assign(new Error("busy"), error), false, undefined, NOW);
}

test.each<Readonly<Record<string, string>>>([
  { "retry-after": "99999999999999999999" },
  { "retry-after": "9".repeat(400) },
  { "retry-after-ms": "Infinity" },
  { "retry-after-ms": "1e308" },
  { "retry-after": "Wed, 01 Jan 99999 00:00:00 GMT", date },
  { "retry-after": "+275760-09-13T00:00:00.000Z", date },
])("a delay of years is none: %j", (headers) => {
  const failure = refused(headers);
  expect(failure).not.toHaveProperty("retryAfterMs");
  const next = afterFailure(failure, { count: 1, since: NOW }, POLICY, { now: NOW, hasFallback: false });
  expect(next).toEqual({ kind: "retry", until: NOW + 1_000 });
});

test("a delay of years in the body is none", () => {
  const details = [{ retryDelay: `${"9".repeat(310)}s` }];
  expect(refused({}, { error: { message: "busy", details } })).not.toHaveProperty("retryAfterMs");
});

test("a provider that always asks for the next call at once is called at most once a second after five calls", () => {
  let [now, count] = [NOW, 0];
  for (let calls = 0; calls < 10_000; calls += 1) {
    count += 1;
    const next = afterFailure(refused({ "retry-after": "0" }), { count, since: NOW }, POLICY, {
      now,
      hasFallback: false,
    });
    if (next.kind !== "retry") break;
    now = next.until;
  }
  expect(count).toBeLessThan(310);
  expect(now - NOW).toBeLessThanOrEqual(300_000);
});
