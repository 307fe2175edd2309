import { createSecretFilter } from "@sluice/core/runtime";
import { expect, test } from "vitest";
import { maskReply } from "../../packages/stages/src/agent/reply-record.ts";
import type { ModelReply } from "../../packages/stages/src/models/reply/reply.ts";

const KEY = "hunter2-hunter2";
const DIGITS = "91827364";
const secrets = createSecretFilter(
  new Map([
    [KEY, "KEY"],
    [DIGITS, "PIN"],
  ]),
);

type Whole = Extract<ModelReply, { readonly ok: true }>;
const providerOptions = { acme: { [KEY]: KEY, pin: Number(DIGITS) } };
const reply: Whole = {
  ok: true,
  content: [
    { type: "text", text: KEY, providerOptions },
    { type: "reasoning", text: KEY },
    { type: "tool-call", toolCallId: KEY, toolName: KEY, input: { [KEY]: KEY }, providerOptions },
    { type: "tool-result", toolCallId: KEY, toolName: KEY, output: { type: "text", value: KEY } },
    { type: "custom", kind: `acme.${KEY}`, providerOptions },
    { type: "file", mediaType: `text/${KEY}`, data: { type: "data", data: "" } },
    { type: "reasoning-file", mediaType: "text/plain", data: { type: "data", data: `AAAA${KEY}` } },
  ],
  calls: [
    { index: 0, id: KEY, tool: KEY, wireName: KEY, input: { [KEY]: KEY }, rawInput: `{"${KEY}":"${KEY}"}` },
    { index: 1, id: "b", tool: "b", rawInput: `{${KEY}`, inputError: { code: "not_json", message: `at ${KEY}` } },
  ],
  text: KEY,
  finishReason: "tool-calls",
  rawFinishReason: KEY,
  usage: {
    inputTokens: Number(DIGITS),
    outputTokens: 1,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    reasoningTokens: 0,
    known: true,
  },
  warnings: [KEY],
  response: { id: KEY, model: KEY },
  providerMetadata: providerOptions,
};

test("a secret in any member of a reply is in none of the cleaned one", () => {
  const clean = maskReply(reply, secrets);
  const text = JSON.stringify(clean);
  expect(text).not.toContain(KEY);
  expect(text).not.toContain(DIGITS);
  expect(clean).toMatchObject({
    response: { id: "[redacted:KEY]", model: "[redacted:KEY]" },
    rawFinishReason: "[redacted:KEY]",
    usage: { inputTokens: 0, known: false },
    // What is signed, or means something as it is, is left out.
    content: [{ type: "text" }, { type: "tool-call" }, { type: "tool-result" }],
  });
});

test("a reply without a secret is the same afterwards", () => {
  const plain: Whole = {
    ...reply,
    content: [],
    calls: [],
    text: "x",
    rawFinishReason: "stop",
    warnings: [],
    response: {},
  };
  const { providerMetadata: _metadata, ...rest } = { ...plain, usage: { ...plain.usage, inputTokens: 5 } };
  expect(maskReply(rest, secrets)).toBe(rest);
});
