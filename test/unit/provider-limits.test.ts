import { APICallError } from "@ai-sdk/provider";
import { describe, expect, test } from "vitest";
import { failureOf } from "../../packages/stages/src/models/reply/failure.ts";

/** Monday, 23 November 2026, 21:30 UTC. */
const NOW = Date.UTC(2026, 10, 23, 21, 30);
const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

function refused(
  statusCode: number,
  message: string,
  more: { readonly headers?: Record<string, string>; readonly error?: Record<string, unknown> } = {},
) {
  const data = { error: { message, ...more.error } };
  const thrown = new APICallError({
    message,
    url: "https://example.com",
    requestBodyValues: {},
    statusCode,
    data,
    responseHeaders: more.headers ?? {},
  });
  return failureOf(thrown, false, undefined, NOW);
}

describe("a message says when a limit ends", () => {
  test.each([
    ["Rate limit reached. Please try again in 1.2s.", 1_200],
    ["Rate limit reached for gpt-5. Please try again in 6m0s.", 6 * MINUTE],
    ["Please try again in 3h12m", 3 * HOUR + 12 * MINUTE],
    ["Please try again in 20 seconds.", 20 * SECOND],
    ["Please retry in 34.074824224s.", 34_075],
    ["Try again in about 2 days, 3 hours", 2 * DAY + 3 * HOUR],
    ["Limit reached, resets in 111 hours", 111 * HOUR],
    ["Please wait 450ms", 450],
    ["You will regain access on 2026-12-01 at 00:00 UTC.", Date.UTC(2026, 11, 1) - NOW],
    ["The limit resets at 2026-11-24T06:00:00Z.", 8.5 * HOUR],
    ["5-hour limit reached, resets 2pm (UTC)", 16.5 * HOUR],
    ["Your limit resets at 22:00 UTC", 30 * MINUTE],
    ["Your limit resets at 12:15 am (GMT)", 2.75 * HOUR],
  ])("%s", (message, wait) => {
    expect(refused(429, message)).toMatchObject({ code: "rate_limited", retryAfterMs: wait });
  });

  test.each([
    "Too many requests",
    "resets 2pm (Europe/London)",
    "resets at 99:00 UTC",
    "try again in 3 bananas",
    "try again in 99999 days",
    "You regained access on 2020-01-01 at 00:00 UTC",
    `try again in ${"9".repeat(400)}s`,
  ])("no time is taken from: %s", (message) => {
    expect(refused(429, message)).not.toHaveProperty("retryAfterMs");
  });

  test("and only a refusal because of a limit is asked", () => {
    expect(refused(400, "temperature is wrong; try again in 3h")).not.toHaveProperty("retryAfterMs");
  });
});

describe("headers say when a limit is whole again", () => {
  test.each([
    ["a date", { "anthropic-ratelimit-tokens-reset": "2026-11-23T21:45:00Z" }, 15 * MINUTE],
    [
      "the limit that is used up",
      {
        "anthropic-ratelimit-requests-reset": "2026-11-23T23:30:00Z",
        "anthropic-ratelimit-requests-remaining": "12",
        "anthropic-ratelimit-tokens-reset": "2026-11-23T21:31:00Z",
        "anthropic-ratelimit-tokens-remaining": "0",
      },
      MINUTE,
    ],
    ["seconds since the epoch", { "anthropic-ratelimit-unified-reset": String(NOW / 1_000 + 3_600) }, HOUR],
    [
      "a duration",
      { "x-ratelimit-reset-requests": "6m0s", "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-tokens": "1s" },
      6 * MINUTE,
    ],
    ["milliseconds since the epoch", { "x-ratelimit-reset": String(NOW + 90_000) }, 90_000],
    ["seconds", { "ratelimit-reset": "24" }, 24_000],
    [
      "a date, by the clock of the service",
      { "x-ratelimit-reset": "Mon, 23 Nov 2026 20:10:00 GMT", date: "Mon, 23 Nov 2026 20:00:00 GMT" },
      10 * MINUTE,
    ],
  ])("%s", (_what, headers: Record<string, string>, wait) => {
    const failure = refused(429, "no", { headers });
    expect(failure.resetAfterMs).toBe(wait);
    expect(failure).not.toHaveProperty("retryAfterMs");
  });

  test("nothing is read from what is no time", () => {
    const headers = { "x-ratelimit-reset": "soon", "anthropic-ratelimit-tokens-reset": "9e99" };
    expect(refused(429, "no", { headers })).not.toHaveProperty("resetAfterMs");
  });

  test("a body may say it too", () => {
    const error = { type: "usage_limit_reached", resets_in_seconds: 756 };
    expect(refused(429, "The usage limit has been reached", { error })).toMatchObject({
      code: "quota_exhausted",
      resetAfterMs: 756_000,
    });
  });
});

describe("an account that has nothing left is not a bad request", () => {
  test.each([
    ["Your credit balance is too low to access the API. Please go to Plans & Billing.", "payment_required"],
    [
      "You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.",
      "quota_exhausted",
    ],
  ])("%s", (message, code) => {
    expect(refused(400, message, { error: { type: "invalid_request_error" } })).toMatchObject({
      kind: "permanent",
      code,
    });
  });

  test("Google's quota of a day is used up, one of a minute is a rate limit", () => {
    const detail = (quotaId: string) => ({
      status: "RESOURCE_EXHAUSTED",
      details: [{ violations: [{ quotaId }] }, { retryDelay: "34s" }],
    });
    const daily = refused(429, "You exceeded your current quota", {
      error: detail("GenerateRequestsPerDayPerProject"),
    });
    expect(daily).toMatchObject({ code: "quota_exhausted" });
    expect(daily).not.toHaveProperty("retryAfterMs");
    const minute = refused(429, "You exceeded your current quota", { error: detail("GenerateRequestsPerMinute") });
    expect(minute).toMatchObject({ code: "rate_limited", retryAfterMs: 34_000 });
  });
});
