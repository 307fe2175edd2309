import { REDACTION_MARKER, redactJson, redactText } from "@sluice/core";
import { expect, test } from "vitest";

const letters = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";

test("texts that look like keys, tokens and passwords are replaced", () => {
  const secrets = [
    `sk-${letters}`,
    `ghp_${letters}`,
    `github_pat_${letters}`,
    `AIza${letters}`,
    "AKIAABCDEFGHIJKLMNOP",
    `xoxb-${letters}`,
    `npm_${letters}`,
    `eyJ${letters}.eyJ${letters}.${letters}`,
    `Bearer ${letters}`,
    `-----BEGIN RSA PRIVATE KEY-----\n${letters}\n-----END RSA PRIVATE KEY-----`,
    `-----BEGIN PRIVATE KEY-----\n${letters}`,
  ];
  for (const secret of secrets) {
    const redacted = redactText(`before ${secret} after`);
    expect(redacted).toContain(REDACTION_MARKER);
    expect(redacted).not.toContain(letters);
    expect(redacted.startsWith("before ")).toBe(true);
  }
  expect(redactText("https://user:hunter22@example.org/")).toBe(
    `https://user:${REDACTION_MARKER}url-password]@example.org/`,
  );
});

test("values are hidden by the names of their keys, whatever they look like", () => {
  const value = {
    password: "short",
    api_key: ["a"],
    "X-Auth-Token": "b",
    tokens: 3,
    inputTokens: 5,
    author: "c",
    cookie: "",
  };
  expect(redactJson(value)).toEqual({
    password: `${REDACTION_MARKER}password]`,
    api_key: `${REDACTION_MARKER}api_key]`,
    "X-Auth-Token": `${REDACTION_MARKER}X-Auth-Token]`,
    tokens: 3,
    inputTokens: 5,
    author: "c",
    cookie: "",
  });
});

test("plain text stays as it is", () => {
  for (const text of ["", "npm test", "task-list sketchy", "a://b", "see https://example.org/a:b@c"]) {
    expect(redactText(text)).toBe(text);
  }
});

test("a long text made to look like the beginning of many secrets is done in time", () => {
  const size = 1_000_000;
  const parts = [
    "eyJ-",
    "eyJaaaaaaaaaa.",
    "eyJaaaaaaaaaa.eyJ-",
    "-----BEGIN ",
    "-----BEGIN PRIVATE KEY-----",
    "bearer ",
    "://a:",
    "://a:b",
    "sk-",
    "xoxb-",
    "ghp_",
    "_",
  ];
  for (const part of parts) {
    const text = part.repeat(size / part.length);
    // Whatever becomes of it: a pattern that tries every start to the end of the text would take hours.
    expect(redactText(text).length).toBeGreaterThan(0);
    expect(redactJson({ [text]: text })).toBeTypeOf("object");
  }
});
