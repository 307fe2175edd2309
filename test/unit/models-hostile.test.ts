import type { LanguageModelV4Prompt, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { isJsonObject, jsonFault } from "@sluice/core";
import fc from "fast-check";
import { expect, test } from "vitest";
import { callModel } from "../../packages/stages/src/agent/model-call.ts";
import { failureOf } from "../../packages/stages/src/models/failure.ts";
import type { ModelReply } from "../../packages/stages/src/models/reply.ts";
import { finish, modelOf, part } from "../support/stream-model.ts";

const prompt: LanguageModelV4Prompt = [{ role: "user", content: [{ type: "text", text: "go" }] }];

const anything = fc.anything({
  withNullPrototype: true,
  withBigInt: true,
  withDate: true,
  withMap: true,
  withTypedArray: true,
  withUnicodeString: true,
  withSparseArray: true,
});
/** Few ids, so that they collide; and things that are no ids at all. */
const id = fc.oneof(fc.constantFrom("0", "1", "call", "call_c1", "0_c1", "", "__proto__"), anything);
const words = fc.oneof(
  fc.string(),
  fc.string({ unit: "binary" }),
  fc.constantFrom(" ", "\ud83d", "{", "{}", "[1]", '{"a":1}', "null", "1e999"),
);
const metadata = fc.option(fc.oneof(anything, fc.dictionary(fc.string(), fc.object())), { nil: undefined });
const block = fc.record({
  type: fc.constantFrom("text-start", "text-delta", "text-end", "reasoning-start", "reasoning-delta", "reasoning-end"),
  id,
  delta: fc.oneof(words, anything),
  providerMetadata: metadata,
});
const call = fc.record({
  type: fc.constantFrom(
    "tool-call",
    "tool-input-start",
    "tool-input-delta",
    "tool-input-end",
    "tool-result",
    "tool-approval-request",
  ),
  id,
  toolCallId: id,
  toolName: fc.oneof(fc.constantFrom("Read", "", "a b", "__proto__"), anything),
  input: fc.oneof(words, anything),
  result: anything,
  isError: anything,
  preliminary: fc.boolean(),
  providerExecuted: fc.oneof(fc.boolean(), anything),
  providerMetadata: metadata,
});
const other = fc.record({
  type: fc.oneof(
    fc.constantFrom("custom", "file", "reasoning-file", "source", "stream-start", "response-metadata", "ping", "raw"),
    anything,
  ),
  id: anything,
  modelId: anything,
  kind: fc.oneof(fc.constantFrom("a.b", "nodot"), anything),
  warnings: fc.oneof(
    fc.array(
      fc.record({
        type: fc.constantFrom("unsupported", "compatibility", "deprecated", "other", "new"),
        feature: anything,
        details: anything,
        setting: anything,
        message: anything,
      }),
    ),
    anything,
  ),
  mediaType: fc.oneof(fc.constant("image/png"), anything),
  data: fc.oneof(
    fc.record({ type: fc.constantFrom("data", "url"), data: fc.oneof(fc.uint8Array(), anything) }),
    anything,
  ),
  providerMetadata: metadata,
});
const end = fc.record({
  type: fc.constant("finish"),
  finishReason: fc.oneof(
    fc.record({ unified: fc.constantFrom("stop", "length", "tool-calls", "error", "interrupted"), raw: anything }),
    anything,
  ),
  usage: fc.oneof(fc.record({ inputTokens: anything, outputTokens: anything }), anything),
  providerMetadata: metadata,
});
const stream = fc.array(fc.oneof({ weight: 3, arbitrary: block }, { weight: 3, arbitrary: call }, other, end), {
  maxLength: 30,
});

function run(parts: readonly LanguageModelV4StreamPart[]): Promise<ModelReply> {
  return callModel({ model: modelOf(parts), prompt, tools: [], signal: new AbortController().signal });
}

test("whatever a stream holds, a call gives a reply or a failure that can be journaled, with distinct calls in valid content", async () => {
  await fc.assert(
    fc.asyncProperty(stream, async (parts) => {
      const reply = await run([...parts.map(part), finish("tool-calls")]);
      expect(jsonFault(reply)).toBeUndefined();
      expect(JSON.parse(JSON.stringify(reply))).toEqual(reply);
      if (!reply.ok) return;
      const wireIds = reply.content.flatMap((each) => (each.type === "tool-call" ? [each.toolCallId] : []));
      expect(new Set(wireIds).size).toBe(wireIds.length);
      expect(reply.calls.map(({ index }) => index)).toEqual(reply.calls.map((_, index) => index));
      for (const each of reply.calls) {
        expect(wireIds).toContain(each.id);
        expect("input" in each).toBe(!("inputError" in each));
      }
      for (const each of reply.content) {
        if (each.type !== "tool-call") continue;
        expect(isJsonObject(each.input)).toBe(true);
        expect(each.toolName).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
      }
    }),
    { numRuns: 500 },
  );
});

test("whatever is thrown, a failure can be journaled and is short", () => {
  fc.assert(
    fc.property(fc.oneof(anything, fc.object(), fc.string()), fc.boolean(), (thrown, opened) => {
      const failure = failureOf(thrown, opened, []);
      expect(jsonFault(failure)).toBeUndefined();
      expect(failure.message.length).toBeLessThanOrEqual(520);
    }),
    { numRuns: 1000 },
  );
});
