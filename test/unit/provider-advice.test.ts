import { describe, expect, test } from "vitest";
import { advised } from "../../packages/stages/src/models/provider-advice.ts";
import { failureOf } from "../../packages/stages/src/models/reply/failure.ts";

const access = {
  provider: "acme",
  address: "https://models.acme.dev/v1",
  addressFrom: "ACME_BASE_URL",
  keyVariable: "ACME_API_KEY",
  hasKey: true,
};

function adviceOn(code: string, message: string, more: Partial<typeof access> = {}): string {
  const failure = { kind: "permanent", code, message } as const;
  return advised(failure, { id: "acme/large", access: { ...access, ...more } }).message;
}

describe("a failed call says what to change:", () => {
  test.each([
    ["unauthorized", "HTTP 401: no", {}, "does not accept the key in ACME_API_KEY"],
    ["unauthorized", "HTTP 401: no", { hasKey: false }, "wants a key: set ACME_API_KEY"],
    ["forbidden", "HTTP 403: no", {}, "check its rights, its region and ACME_BASE_URL"],
    ["payment_required", "HTTP 402: no", {}, "the account of ACME_API_KEY has no credit"],
    ["not_found", "HTTP 404: no", {}, "has no model large"],
    ["not_found", "HTTP 404: no", { address: "https://a.dev/v1/messages" }, "ACME_BASE_URL ends in /messages"],
    ["network", "fetch failed (SELF_SIGNED_CERT_IN_CHAIN)", {}, "NODE_EXTRA_CA_CERTS"],
    ["network", "connect ECONNREFUSED 127.0.0.1:1", {}, "nothing listens at https://models.acme.dev/v1"],
    ["network", "getaddrinfo EAI_AGAIN models.acme.dev", {}, "the host of https://models.acme.dev/v1 is not known"],
    ["network", "connect ETIMEDOUT 10.0.0.1:443", {}, "cannot be reached"],
  ])("%s of %j, with %j", (code, message, more, words) => {
    expect(adviceOn(code, message, more)).toContain(words);
  });

  test("nothing where nothing is to change, or nothing is known", () => {
    expect(adviceOn("rate_limited", "HTTP 429: wait")).toBe("HTTP 429: wait");
    const failure = { kind: "permanent", code: "unauthorized", message: "no" } as const;
    expect(advised(failure, { id: "scripted" })).toBe(failure);
  });
});

describe("an HTML page in place of an answer", () => {
  const page = (status: number, html: string): unknown => ({
    name: "AI_APICallError",
    message: "Forbidden",
    statusCode: status,
    url: "https://models.acme.dev/v1/messages?key=hunter2hunter2",
    responseHeaders: { "content-type": "text/html" },
    responseBody: html,
  });

  test("is named with its status, its title on one line, and the address without its query", () => {
    const failure = failureOf(page(403, "<html><title>Acme &amp; Co\n\u001b[31mproxy</title>"), false);
    expect(failure).toMatchObject({ code: "html_response", status: 403, kind: "permanent" });
    expect(failure.message).toBe(
      'HTTP 403: an HTML page ("Acme & Co proxy") from https://models.acme.dev/v1/messages instead of the API\'s answer',
    );
  });

  test("that a wait may end keeps the code of its status", () => {
    expect(failureOf(page(502, "<html></html>"), false)).toMatchObject({ kind: "transient", code: "server_error" });
    expect(failureOf(page(429, "<html></html>"), false)).toMatchObject({ kind: "transient", code: "rate_limited" });
  });

  test("has a title of a bounded length", () => {
    expect(failureOf(page(403, `<title>${"x".repeat(900)}</title>`), false).message.length).toBeLessThan(300);
  });
});
