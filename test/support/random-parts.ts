import fc from "fast-check";

// Stream parts as no provider should send them: every field may hold anything.

/** Any value at all, small. */
export const anything = fc.anything({
  withNullPrototype: true,
  withBigInt: true,
  withDate: true,
  withMap: true,
  withTypedArray: true,
  withUnicodeString: true,
  withSparseArray: true,
  // Thousands are made: most of the time would go into values that are larger, not odder.
  maxDepth: 2,
  maxKeys: 3,
});
/** Few ids, so that they collide; and things that are no ids at all. */
const id = fc.oneof(fc.constantFrom("0", "1", "call", "call_c1", "0_c1", "", "__proto__"), anything);
const words = fc.oneof(
  fc.string(),
  fc.string({ unit: "binary" }),
  fc.constantFrom(" ", "\ud83d", "{", "{}", "[1]", '{"a":1}', "null", "1e999"),
);
const byProvider = fc.dictionary(fc.string(), fc.object({ maxDepth: 2, maxKeys: 2 }), { maxKeys: 3 });
const metadata = fc.option(fc.oneof(anything, byProvider), { nil: undefined });

/** Texts and reasoning, interleaved, unopened, unclosed. */
export const block = fc.record({
  type: fc.constantFrom("text-start", "text-delta", "text-end", "reasoning-start", "reasoning-delta", "reasoning-end"),
  id,
  delta: fc.oneof(words, anything),
  providerMetadata: metadata,
});
export const call = fc.record({
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
export const other = fc.record({
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
export const end = fc.record({
  type: fc.constant("finish"),
  finishReason: fc.oneof(
    fc.record({ unified: fc.constantFrom("stop", "length", "tool-calls", "error", "interrupted"), raw: anything }),
    anything,
  ),
  usage: fc.oneof(fc.record({ inputTokens: anything, outputTokens: anything }), anything),
  providerMetadata: metadata,
});
