import { isSluiceError } from "@sluice/core";
import { createSession, type PriceOption } from "@sluice/stages";
import { modelFacts } from "@sluice/stages/runtime";
import { describe, expect, test } from "vitest";

describe("what is known about a model", () => {
  const known = modelFacts();

  test("is found by the id, a date at its end left out", () => {
    const facts = known("anthropic/claude-haiku-4-5");
    expect(facts).toMatchObject({ price: { input: 1, output: 5 }, contextWindow: 200_000, maxOutputTokens: 64_000 });
    expect(known("anthropic/claude-haiku-4-5-20251001")).toEqual(facts);
    expect(known("bedrock/global.anthropic.claude-haiku-4-5-20251001-v1:0")).toEqual(facts);
    // A region may cost more, and a deployment has any name.
    for (const id of ["bedrock/eu.anthropic.claude-haiku-4-5-20251001-v1:0", "vertex/claude-haiku-4-5", "azure/gpt-5"])
      expect(known(id)).toEqual({});
    expect(known("openai/gpt-5.4-2026-03-05")).toEqual(known("openai/gpt-5.4"));
  });

  test("is found by the names that model objects give themselves, and for both ways to OpenAI", () => {
    expect(known("anthropic.messages/claude-opus-5")).toEqual(known("anthropic/claude-opus-5"));
    expect(known("openai.responses/gpt-6-sol")).toEqual(known("openai/gpt-6-sol"));
    expect(known("openai-chat/gpt-6-sol")).toEqual(known("openai/gpt-6-sol"));
    expect(known("openai/gpt-6-sol").price).toBeDefined();
  });

  test.each([
    "openai/gpt-5.4-pro",
    "openai/gpt-5.4-minimal",
    "openai/gpt-5.4-2026-03-05-fast",
    "anthropic/claude-haiku",
    "anthropic/__proto__",
    "openai/constructor",
    "google/claude-opus-5",
    "gateway/anthropic/claude-opus-5",
    "openai-compatible/gpt-5.4",
    "claude-opus-5",
    "",
  ])("is nothing for %j, however like a known one it looks", (id) => {
    expect(known(id)).toEqual({});
  });

  test("is that scripted models and Ollama's cost nothing", () => {
    for (const id of ["scripted", "scripted:model.json", "ollama/qwen3:32b"]) {
      expect(known(id).price).toEqual({ input: 0, output: 0 });
    }
  });

  test("has prices that make sense: reading a cache is never dearer than input, writing never cheaper, long prompts dearer", () => {
    const ids = ["anthropic/claude-haiku-5-5", "openai/gpt-6.2-sol", "google/gemini-3.1-pro-preview"];
    for (const id of ids) {
      const { price } = known(id);
      if (price?.longPrompt === undefined) throw new Error(`${id} has a price for long prompts`);
      const { input, output, cacheRead = input, cacheWrite = input, longPrompt } = price;
      expect(cacheRead).toBeLessThanOrEqual(input);
      expect(cacheWrite).toBeGreaterThanOrEqual(input);
      expect(longPrompt.input).toBeGreaterThan(input);
      expect(longPrompt.output).toBeGreaterThan(output);
    }
  });
});

describe("what a session says", () => {
  test("wins over what is built in, and is taken whole", () => {
    const facts = modelFacts({ "anthropic/claude-haiku-4-5": { input: 7, output: 8 } })("anthropic/claude-haiku-4-5");
    // No price of a cache is left of the built-in one.
    expect(facts).toEqual({ price: { input: 7, output: 8 }, contextWindow: 200_000, maxOutputTokens: 64_000 });
  });

  test("may be the window alone, beside the built-in price", () => {
    const { price, contextWindow } = modelFacts({ "openai/gpt-6-sol": { contextWindow: 10 } })("openai/gpt-6-sol");
    expect(contextWindow).toBe(10);
    expect(price).toEqual(modelFacts()("openai/gpt-6-sol").price);
  });

  test("may be for the beginning of ids: the id itself wins, then the longest beginning", () => {
    const of = modelFacts({
      "*": { input: 1, output: 1 },
      "ollama/*": { input: 2, output: 2 },
      "ollama/big*": { input: 3, output: 3 },
      "ollama/big-one": { input: 4, output: 4 },
    });
    const inputs = ["openai/x", "ollama/x", "ollama/big-two", "ollama/big-one"].map((id) => of(id).price?.input);
    expect(inputs).toEqual([1, 2, 3, 4]);
  });

  test("may make a model dearer that would be free", () => {
    expect(modelFacts({ "scripted:*": { input: 1, output: 2 } })("scripted:a.json").price?.output).toBe(2);
  });

  test.each<[string, Record<string, unknown>]>([
    ["negative", { input: -1, output: 1 }],
    ["not a number", { input: Number.NaN, output: 1 }],
    ["endless", { input: Number.POSITIVE_INFINITY, output: 1 }],
    ["text", { input: "1", output: 1 }],
    ["half a price", { input: 1 }],
    ["a cache's price alone", { cacheRead: 1 }],
    ["a window of nothing", { contextWindow: 0 }],
    ["half a token", { maxOutputTokens: 0.5 }],
    ["long prompts without prices", { input: 1, output: 1, longPrompt: { over: 5 } }],
    ["long prompts from nowhere on", { input: 1, output: 1, longPrompt: { input: 1, output: 1 } }],
    ["an unknown field", { input: 1, output: 1, ouptut: 2 }],
  ])("is refused with what is wrong when it is %s", (_what, option) => {
    const prices: Record<string, PriceOption> = {};
    Object.assign(prices, { "some/model": option });
    const make = () => createSession({ model: "scripted:none.json", prices });
    expect(make).toThrow(expect.objectContaining({ class: "Validation", code: "invalid_prices" }));
    expect(make).toThrow(/some\/model/);
  });

  const PRICE = "must be US dollars per million tokens, from 0 to 1000000";
  const TOKENS = "must be a number of tokens: an integer from 1";
  test.each<[string, unknown, readonly (readonly [path: string, message: string, suggestion?: string])[]]>([
    ["a number", 3, [["", "must be an object of prices"]]],
    ["null", null, [["", "must be an object of prices"]]],
    [
      "unknown fields",
      { input: 1, output: 1, ouptut: 2, cach: 3 },
      [
        [".ouptut", "is not a known option"],
        [".cach", "is not a known option"],
      ],
    ],
    [
      "texts and numbers out of range",
      { input: "1", output: -1, contextWindow: 0, maxOutputTokens: "many" },
      [
        [".input", PRICE],
        [".output", PRICE],
        [".contextWindow", TOKENS],
        [".maxOutputTokens", TOKENS],
      ],
    ],
    ["half a price", { input: 1 }, [["", "needs prices for both input and output, or for neither"]]],
    ["a cache's price", { cacheRead: 1 }, [["", "has no prices for input and output", "add input and output"]]],
    [
      "a number for long prompts",
      { input: 1, output: 1, longPrompt: 2 },
      [[".longPrompt", "must be an object of prices"]],
    ],
    [
      "long prompts with mistakes",
      { input: 1, output: 1, longPrompt: { input: 1, output: "2", over: 0.5, until: 3 } },
      [
        [".longPrompt.output", PRICE],
        [".longPrompt.over", TOKENS],
        [".longPrompt.until", "is not a known option"],
      ],
    ],
  ])("of %s is reported with where it is and how to fix it", (_what, option, expected) => {
    const prices: Record<string, PriceOption> = {};
    Object.assign(prices, { "some/model": option });
    const problems = expected.map(([path, message, suggestion]) => ({
      path: `prices["some/model"]${path}`,
      message,
      ...(suggestion === undefined ? {} : { suggestion }),
    }));
    expect(() => modelFacts(prices)).toThrow(expect.objectContaining({ detail: { problems } }));
  });

  test("tells all mistakes at once", () => {
    try {
      modelFacts({ a: { input: -1, output: 1 }, b: { input: 1, output: -1 } });
      expect.unreachable();
    } catch (error) {
      if (!isSluiceError(error)) throw error;
      expect(error.message).toContain('prices["a"].input');
      expect(error.message).toContain('prices["b"].output');
    }
  });
});
