import type { LanguageModelV4Prompt, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { isJsonObject } from "@sluice/core";
import { jsonFault } from "@sluice/core/runtime";
import fc from "fast-check";
import { expect, test } from "vitest";
import { callModel } from "../../packages/stages/src/agent/model-call.ts";
import { failureOf } from "../../packages/stages/src/models/reply/failure.ts";
import type { ModelReply } from "../../packages/stages/src/models/reply/reply.ts";
import { anything, block, call, end, other } from "../support/random-parts.ts";
import { finish, modelOf, part } from "../support/stream-model.ts";

const prompt: LanguageModelV4Prompt = [{ role: "user", content: [{ type: "text", text: "go" }] }];

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
      const failure = failureOf(thrown, opened);
      expect(jsonFault(failure)).toBeUndefined();
      expect(failure.message.length).toBeLessThanOrEqual(520);
    }),
    { numRuns: 1000 },
  );
});
