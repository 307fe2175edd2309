import { done, pipeline, type StageOptions, stage } from "@sluice/core";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { PROVIDERS, type ProviderName } from "../support/providers.ts";
import { dataOf, eventsOf } from "../support/run-kit.ts";
import type { ServerReply } from "../support/sse-server.ts";
import { wiredSession } from "../support/wired-session.ts";

type Settings = Partial<
  Pick<
    StageOptions<Record<never, never>, unknown, undefined>,
    | "model"
    | "reasoning"
    | "toolChoice"
    | "providerOptions"
    | "cache"
    | "maxOutputTokens"
    | "topP"
    | "seed"
    | "stopSequences"
  >
>;

function one(settings: Settings, turnCap = 4) {
  return pipeline({
    id: "one",
    input: z.object({ task: z.string() }),
    stages: {
      work: stage({
        prompt: "Work.",
        allowedTools: ["Glob"],
        completionTool: "finish",
        completionSchema: z.object({ summary: z.string() }),
        turnCap,
        ...settings,
      }),
    },
    initial: "work",
    next: { work: ({ output }) => done(output) },
  });
}

const LAST: ServerReply = { calls: [{ name: "finish", input: { summary: "Done." } }] };
const LOOK: ServerReply = { calls: [{ name: "Glob", input: { pattern: "*.txt" } }] };

/** Runs a stage with these settings and returns what its provider received. */
async function sent(name: ProviderName, settings: Settings, replies: readonly ServerReply[] = [LAST]) {
  const { live, server } = await wiredSession(name, replies);
  const handle = live.start(one(settings), { task: "look" });
  const result = await handle;
  return { result, bodies: server.requests.map(({ body }) => body), events: await eventsOf(live.host, handle.runId) };
}

describe("a stage's reasoning effort", () => {
  test.each<[ProviderName, string | undefined, object]>([
    ["anthropic", "anthropic/claude-opus-4-6", { thinking: { type: "adaptive" }, output_config: { effort: "high" } }],
    ["anthropic", "anthropic/claude-sonnet-4-5", { thinking: { type: "enabled", budget_tokens: expect.any(Number) } }],
    ["openai", undefined, { reasoning: { effort: "high" } }],
    ["openai-chat", "openai-chat/gpt-5", { reasoning_effort: "high" }],
    ["google", undefined, { generationConfig: { thinkingConfig: expect.objectContaining({}) } }],
    ["gateway", undefined, { reasoning: "high" }],
    ["ollama", undefined, { reasoning_effort: "high" }],
    ["openai-compatible", undefined, { reasoning_effort: "high" }],
  ])("is in the request to %s (%s)", async (name, model, expected) => {
    const settings: Settings = { reasoning: "high", ...(model === undefined ? {} : { model }) };
    const { result, bodies } = await sent(name, settings);
    expect(result.status).toBe("completed");
    expect(bodies).toMatchObject([expected]);
  });

  test.each(PROVIDERS)("is not in a request to %s if the stage sets none", async (name) => {
    const { bodies } = await sent(name, {});
    expect(JSON.stringify(bodies)).not.toMatch(/effort|thinking|"reasoning":"/);
  });

  test("that a model does not have is left out, and one event of the stage says so", async () => {
    const look = { name: "Glob", input: { pattern: "*" } };
    const { result, bodies, events } = await sent("openai", { reasoning: "xhigh" }, [
      { calls: [look] },
      { calls: [look] },
      LAST,
    ]);
    expect(result.status).toBe("completed");
    expect(JSON.stringify(bodies)).not.toContain("xhigh");
    expect(dataOf(events, "model.warned")).toMatchObject([
      { turn: 1, model: "openai/gpt-5", warnings: [expect.stringMatching(/reasoning/i)] },
    ]);
  });
});

describe("a stage's topP, seed and stopSequences", () => {
  const settings: Settings = { topP: 0.5, seed: 7, stopSequences: ["END"] };

  test.each<[ProviderName, string | undefined, object]>([
    ["anthropic", undefined, { top_p: 0.5, stop_sequences: ["END"] }],
    ["openai", "openai/gpt-4.1", { top_p: 0.5 }],
    ["openai-chat", "openai-chat/gpt-4.1", { top_p: 0.5, seed: 7, stop: ["END"] }],
    ["google", undefined, { generationConfig: { topP: 0.5, seed: 7, stopSequences: ["END"] } }],
    ["gateway", undefined, { topP: 0.5, seed: 7, stopSequences: ["END"] }],
    ["ollama", undefined, { top_p: 0.5, seed: 7, stop: ["END"] }],
    ["openai-compatible", undefined, { top_p: 0.5, seed: 7, stop: ["END"] }],
  ])("are in the request to %s (%s), as far as its service has them", async (name, model, expected) => {
    const { result, bodies } = await sent(name, { ...settings, ...(model === undefined ? {} : { model }) });
    expect(result.status).toBe("completed");
    expect(bodies).toMatchObject([expected]);
  });

  test.each(PROVIDERS)("are not in a request to %s if the stage sets none", async (name) => {
    const { bodies } = await sent(name, {});
    expect(JSON.stringify(bodies)).not.toMatch(/"(?:top_?p|seed|stop(?:_sequences|Sequences)?)":/i);
  });

  test.each<[ProviderName, string | undefined, RegExp]>([
    ["anthropic", undefined, /seed/],
    ["openai", "openai/gpt-4.1", /seed/],
    ["openai", "openai/gpt-4.1", /stopSequences/],
  ])("that %s (%s) does not have are left out, and an event of the stage says so: %s", async (name, model, warned) => {
    const { bodies, events } = await sent(name, { ...settings, ...(model === undefined ? {} : { model }) });
    expect(JSON.stringify(bodies)).not.toMatch(/"seed"/);
    expect(dataOf(events, "model.warned")).toMatchObject([
      { warnings: expect.arrayContaining([expect.stringMatching(warned)]) },
    ]);
  });
});

describe("a stage that requires a tool call in every turn", () => {
  test.each<[ProviderName, object]>([
    ["anthropic", { tool_choice: { type: "any" } }],
    ["openai", { tool_choice: "required" }],
    ["openai-chat", { tool_choice: "required" }],
    ["google", { toolConfig: { functionCallingConfig: { mode: "ANY" } } }],
    ["gateway", { toolChoice: { type: "required" } }],
    ["ollama", { tool_choice: "required" }],
    ["openai-compatible", { tool_choice: "required" }],
  ])("says so to %s, and its completion tool is still the only way out", async (name, expected) => {
    const { result, bodies } = await sent(name, { toolChoice: "required" }, [LOOK, LAST]);
    expect(result).toMatchObject({ status: "completed", output: { summary: "Done." } });
    expect(bodies).toMatchObject([expected, expected]);
  });

  test("may choose where Anthropic's model thinks, since the service refuses both, and one event says so", async () => {
    const { result, bodies, events } = await sent(
      "anthropic",
      { model: "anthropic/claude-opus-4-6", reasoning: "low", toolChoice: "required" },
      [LOOK, LAST],
    );
    expect(result.status).toBe("completed");
    expect(bodies).toMatchObject([{ tool_choice: { type: "auto" } }, { tool_choice: { type: "auto" } }]);
    expect(dataOf(events, "model.warned")).toMatchObject([{ warnings: [expect.stringContaining("toolChoice")] }]);
  });
});

test.each<[ProviderName, NonNullable<Settings["providerOptions"]>, object]>([
  ["anthropic", { anthropic: { serviceTier: "standard_only" } }, { service_tier: "standard_only" }],
  ["openai", { openai: { serviceTier: "flex" } }, { service_tier: "flex" }],
  [
    "google",
    { google: { thinkingConfig: { thinkingBudget: 512 } } },
    { generationConfig: { thinkingConfig: { thinkingBudget: 512 } } },
  ],
  ["gateway", { gateway: { order: ["bedrock"] } }, { providerOptions: { gateway: { order: ["bedrock"] } } }],
])("options of the package of %s reach the service", async (name, providerOptions, expected) => {
  const { bodies } = await sent(name, { providerOptions });
  expect(bodies).toMatchObject([expected]);
});

describe("the prompt cache of Anthropic", () => {
  const script: readonly ServerReply[] = [LOOK, LOOK, LOOK, LAST];

  test("has a mark on the tools, on the system message and at the ends of the last two turns", async () => {
    const { bodies } = await sent("anthropic", {}, script);
    const marked = bodies.map((body) => marksIn(body));
    expect(marked).toEqual([
      ["tools.1", "system.0", "messages.0.content.0"],
      ["tools.1", "system.0", "messages.0.content.0", "messages.2.content.0"],
      ["tools.1", "system.0", "messages.2.content.0", "messages.4.content.0"],
      // On the last turn only the completion tool is offered.
      ["tools.0", "system.0", "messages.4.content.0", "messages.6.content.0"],
    ]);
  });

  test("finds each prefix again: without the marks, a request begins with the one before", async () => {
    const { bodies } = await sent("anthropic", {}, [LOOK, LOOK, LAST]);
    const plain = bodies.map(({ system, tools, messages }) =>
      JSON.stringify([tools, system, messages], (key, value) => (key === "cache_control" ? undefined : value)),
    );
    for (const [index, text] of plain.entries()) {
      const before = plain[index - 1];
      if (before !== undefined) expect(text.startsWith(before.slice(0, -2))).toBe(true);
    }
  });

  test("is not used by a stage that switches it off", async () => {
    const { bodies } = await sent("anthropic", { cache: false }, script);
    expect(JSON.stringify(bodies)).not.toContain("cache_control");
  });

  test("is not used in a session that switches it off", async () => {
    const { live, server } = await wiredSession("anthropic", script, { promptCache: false });
    await live.run(one({}), { task: "look" });
    expect(JSON.stringify(server.requests.map(({ body }) => body))).not.toContain("cache_control");
  });

  test("is priced: what it read and wrote counts with prices of their own", async () => {
    const usage = { input: 100, cacheRead: 1_000, cacheWrite: 500, output: 10 };
    const { live } = await wiredSession("anthropic", [{ ...LAST, usage }]);
    const result = await live.run(one({}), { task: "look" });
    // Per million: input 3, cache reads 0.3, cache writes 3.75, output 15.
    expect(result.usage.costUsd).toBeCloseTo((100 * 3 + 1_000 * 0.3 + 500 * 3.75 + 10 * 15) / 1e6, 12);
  });
});

/** Where a body has cache marks, as paths. */
function marksIn(value: unknown, path = ""): readonly string[] {
  if (typeof value !== "object" || value === null) return [];
  const own = "cache_control" in value ? [path] : [];
  const inside = Object.entries(value).flatMap(([key, member]) =>
    key === "cache_control" ? [] : marksIn(member, path === "" ? key : `${path}.${key}`),
  );
  return [...own, ...inside].toSorted((a, b) => order(a) - order(b));
}

function order(path: string): number {
  return ["tools", "system", "messages"].indexOf(path.split(".", 1)[0] ?? "") * 1_000 + Number(/\d+/.exec(path)?.[0]);
}
