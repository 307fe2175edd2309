import {
  APICallError,
  InvalidResponseDataError,
  LoadAPIKeyError,
  UnsupportedFunctionalityError,
} from "@ai-sdk/provider";
import { SluiceError } from "@sluice/core";
import { createSecretFilter } from "@sluice/core/runtime";
import { describe, expect, test } from "vitest";
import { failureOf } from "../../packages/stages/src/models/reply/failure.ts";

const refusal = (statusCode: number, more: Partial<ConstructorParameters<typeof APICallError>[0]> = {}): APICallError =>
  new APICallError({ message: "no", url: "https://example.com", requestBodyValues: {}, statusCode, ...more });

describe("an HTTP status decides", () => {
  test.each([
    [400, "permanent", "bad_request"],
    [401, "permanent", "unauthorized"],
    [402, "permanent", "payment_required"],
    [403, "permanent", "forbidden"],
    [404, "permanent", "not_found"],
    [408, "transient", "timeout"],
    [409, "transient", "conflict"],
    [413, "context_overflow", "context_overflow"],
    [418, "permanent", "provider_error"],
    [422, "permanent", "bad_request"],
    [429, "transient", "rate_limited"],
    [500, "transient", "server_error"],
    [502, "transient", "server_error"],
    [503, "transient", "overloaded"],
    [529, "transient", "overloaded"],
  ])("%i is %s (%s)", (status, kind, code) => {
    expect(failureOf(refusal(status), false)).toEqual({ kind, code, status, message: `HTTP ${status}: no` });
  });

  test("what the provider says about trying again wins where the status leaves it open", () => {
    expect(failureOf(refusal(500, { isRetryable: false }), false).kind).toBe("permanent");
    expect(failureOf(refusal(425, { isRetryable: true }), false).kind).toBe("transient");
    expect(failureOf(refusal(401, { isRetryable: true }), false).kind).toBe("permanent");
  });

  test("an exhausted quota does not come back by waiting, though it is a 429", () => {
    const data = {
      error: { message: "You exceeded your current quota", type: "insufficient_quota", code: "insufficient_quota" },
    };
    expect(failureOf(refusal(429, { data }), false)).toMatchObject({ kind: "permanent", code: "quota_exhausted" });
  });
});

describe("a prompt that does not fit", () => {
  test.each([
    ["prompt is too long: 214310 tokens > 200000 maximum", undefined],
    ["input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000", undefined],
    [
      "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens",
      "context_length_exceeded",
    ],
    ["the request exceeds the available context size. try increasing it", "exceed_context_size_error"],
    ["The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", undefined],
    ["whatever words", "context_length_exceeded"],
  ])("is distinguished from other bad requests: %s", (message, code) => {
    const data = { error: { message, ...(code === undefined ? {} : { code }) } };
    expect(failureOf(refusal(400, { message, data }), false).kind).toBe("context_overflow");
  });

  test("a rate limit that speaks of tokens is no overflow", () => {
    const message = "This request would exceed the maximum context of your rate limit: prompt is too long";
    expect(failureOf(refusal(429, { message }), false).code).toBe("rate_limited");
  });

  test("words of a bad request that only mention the prompt are no overflow", () => {
    expect(failureOf(refusal(400, { message: "prompt: field required" }), false).kind).toBe("permanent");
  });
});

describe("how long to wait", () => {
  const wait = (responseHeaders: Record<string, string>): number | undefined =>
    failureOf(refusal(429, { responseHeaders }), false).retryAfterMs;

  test("milliseconds, seconds and dates are understood", () => {
    expect(wait({ "retry-after-ms": "1500.2" })).toBe(1501);
    expect(wait({ "retry-after-ms": "20", "retry-after": "9" })).toBe(20);
    expect(wait({ "retry-after": "7" })).toBe(7000);
    expect(wait({ "retry-after": "0.5" })).toBe(500);
    expect(wait({ date: "Sat, 21 Nov 2026 10:00:00 GMT", "retry-after": "Sat, 21 Nov 2026 10:00:30 GMT" })).toBe(
      30_000,
    );
    expect(wait({ date: "Sat, 21 Nov 2026 10:00:30 GMT", "retry-after": "Sat, 21 Nov 2026 10:00:00 GMT" })).toBe(0);
  });

  test.each([
    [{}],
    [{ "retry-after": "soon" }],
    [{ "retry-after": "-3" }],
    [{ "retry-after-ms": "-3" }],
    [{ "retry-after": "Sat, 21 Nov 2026 10:00:30 GMT" }],
  ])("nonsense (%j) is no wait", (headers) => {
    expect(wait(headers)).toBeUndefined();
  });
});

describe("errors without a status", () => {
  test("a prompt that a provider's package refuses is not asked again, whatever its message says", () => {
    const refused = Object.assign(new Error("stream ended in an invalid prompt"), { name: "AI_InvalidPromptError" });
    expect(failureOf(refused, true)).toMatchObject({ kind: "permanent", code: "bad_request" });
  });

  test("a server that cannot be reached is transient before the answer and a cut stream in it", () => {
    const cause = Object.assign(new Error("connect ECONNREFUSED 127.0.0.1:1"), { code: "ECONNREFUSED" });
    const fetchFailed = new TypeError("fetch failed", { cause });
    expect(failureOf(fetchFailed, false)).toMatchObject({ kind: "transient", code: "network" });
    expect(failureOf(fetchFailed, true)).toMatchObject({ kind: "cut_stream" });
    const wrapped = new APICallError({
      message: "Cannot connect to API: connect ECONNREFUSED 127.0.0.1:1",
      url: "http://127.0.0.1:1",
      requestBodyValues: {},
      cause,
      isRetryable: true,
    });
    expect(failureOf(wrapped, false)).toEqual({
      kind: "transient",
      code: "network",
      message: "Cannot connect to API: connect ECONNREFUSED 127.0.0.1:1",
    });
  });

  test("an abort that is not ours is a timeout", () => {
    expect(failureOf(new DOMException("too slow", "TimeoutError"), false)).toMatchObject({
      kind: "transient",
      code: "timeout",
    });
    expect(failureOf(new DOMException("stopped", "AbortError"), true)).toMatchObject({ kind: "cut_stream" });
  });

  test.each([
    [{ type: "overloaded_error", message: "Overloaded" }, "transient", "overloaded"],
    [{ type: "rate_limit_error", message: "slow down" }, "transient", "rate_limited"],
    [{ error: { type: "authentication_error", message: "who are you" } }, "permanent", "unauthorized"],
    [{ message: "The server had an error", type: "server_error", code: null }, "transient", "server_error"],
    [{ message: "too long", code: "context_length_exceeded" }, "context_overflow", "context_overflow"],
    [{ message: "slow down", code: 429 }, "transient", "rate_limited"],
    [{ message: "toString", type: "toString" }, "transient", "provider_error"],
    ["plain words", "transient", "provider_error"],
    [undefined, "transient", "provider_error"],
  ])("an error in the stream is read by its shape: %j", (error, kind, code) => {
    expect(failureOf(error, true)).toMatchObject({ kind, code });
  });

  test("what the SDK throws about the request is permanent, about the answer transient", () => {
    expect(failureOf(new UnsupportedFunctionalityError({ functionality: "x" }), false)).toMatchObject({
      kind: "permanent",
      code: "unsupported",
    });
    expect(failureOf(new LoadAPIKeyError({ message: "no key" }), false)).toMatchObject({
      kind: "permanent",
      code: "missing_key",
    });
    expect(failureOf(new InvalidResponseDataError({ data: 1 }), true)).toMatchObject({
      kind: "transient",
      code: "invalid_response",
    });
    const ended = new InvalidResponseDataError({
      data: undefined,
      message: "Response stream ended without a finish reason.",
    });
    expect(failureOf(ended, true)).toMatchObject({ kind: "cut_stream" });
  });

  test("an error of ours keeps its code", () => {
    const exhausted = new SluiceError("ProviderCapability", "script_exhausted", "add a turn");
    expect(failureOf(exhausted, false)).toEqual({
      kind: "permanent",
      code: "script_exhausted",
      message: "add a turn",
    });
  });
});

describe("messages", () => {
  const message = (text: string, secrets: readonly string[] = []): string =>
    failureOf(new Error(text), true, createSecretFilter(new Map(secrets.map((secret) => [secret, "IT"])))).message;

  test("hold no key, known or not", () => {
    expect(message("token hunter2 is wrong", ["hunter2", ""])).toBe("token [redacted:IT] is wrong");
    expect(message("Incorrect API key provided: sk-proj-abcdef123456.")).not.toContain("abcdef");
    expect(message("bad header Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.abc")).not.toContain("eyJhbGciOi");
    expect(message('{"x-api-key":"zzzz1zzzzz"}')).not.toContain("zzzz1zzzzz");
  });

  test("keep the words around a key", () => {
    const words = "invalid api key: missing; use basic authentication";
    expect(message(words)).toBe(words);
  });

  test("are one short line without control characters", () => {
    expect(message("a\u001b[31mred\u001b[0m\n\tb\u0000c")).toBe("a red b c");
    expect(message("x".repeat(100_000)).length).toBeLessThanOrEqual(501);
  });

  test("hold no half of a secret where they are cut", () => {
    const token = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    for (const [start, gap] of [
      [430, ""],
      [3_950, " "],
    ] as const)
      for (let length = start; length < start + 70; length += 1) {
        const before = gap === "" ? "x".repeat(length) : `x${gap.repeat(length)}`;
        expect(message(`${before} token ${token} ${"y".repeat(100)}`)).not.toMatch(/ghp_\d{4}/);
        expect(message(`${before} DB_PASSWORD='hunter2 hunter2 hunter2' ${"y".repeat(100)}`)).not.toContain("hunter2");
      }
    expect(message(`${"x".repeat(430)} ${token} ${"y".repeat(100)}`)).toContain("x [redacted:github-token] y");
  });

  test("that are not cut keep what they quote", () => {
    expect(message("the field password = hunter2hunter2 is unknown")).toBe(
      "the field password = hunter2hunter2 is unknown",
    );
  });

  test("hold no stack", () => {
    const thrown = new Error("boom");
    expect(JSON.stringify(failureOf(thrown, true))).not.toContain("models-failure");
  });
});
