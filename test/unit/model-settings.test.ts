import { done, pipeline, type StageOptions, stage } from "@sluice/core";
import { router } from "@sluice/stages";
import { expect, test } from "vitest";
import { z } from "zod";

type Settings = Partial<
  Pick<
    StageOptions<Record<never, never>, unknown, undefined>,
    "reasoning" | "toolChoice" | "providerOptions" | "cache" | "temperature" | "topP" | "seed" | "stopSequences"
  >
>;

const common = { prompt: "Work.", completionTool: "submit", turnCap: 3, allowedTools: [] };
const completionSchema = z.object({ text: z.string() });

function fingerprintOf(settings: Settings): string {
  const work = stage({ ...common, completionSchema, ...settings });
  return pipeline({
    id: "one",
    input: z.object({ task: z.string() }),
    stages: { work },
    initial: "work",
    next: { work: ({ output }) => done(output) },
  }).spec.fingerprint;
}

test("each setting of a model is part of the fingerprint, and none of them changes one that lacks it", () => {
  const variants: readonly Settings[] = [
    {},
    { reasoning: "low" },
    { reasoning: "high" },
    { toolChoice: "required" },
    { providerOptions: { openai: { serviceTier: "flex" } } },
    { providerOptions: { openai: { serviceTier: "priority" } } },
    { cache: false },
    { topP: 0.5 },
    { seed: 0 },
    { seed: 7 },
    { stopSequences: ["END"] },
    { stopSequences: ["END", "STOP"] },
  ];
  expect(new Set(variants.map(fingerprintOf)).size).toBe(variants.length);
  expect(fingerprintOf({ cache: true })).toBe(fingerprintOf({}));
  expect(fingerprintOf({ stopSequences: [] })).toBe(fingerprintOf({}));
});

test.each<[object, string]>([
  [{ reasoning: "enormous" }, 'reasoning | must be one of "none", "minimal", "low", "medium", "high", "xhigh"'],
  [{ toolChoice: "submit" }, 'toolChoice | must be one of "auto", "required"'],
  [{ providerOptions: { openai: "flex" } }, "providerOptions | must be an object of JSON objects by provider"],
  [
    { providerOptions: { openai: { now: () => 1 } } },
    "providerOptions | must be an object of JSON objects by provider",
  ],
  [{ providerOptions: [] }, "providerOptions | must be an object of JSON objects by provider"],
  [{ topP: 0 }, "topP | must be a number above 0 and up to 1"],
  [{ topP: 1.5 }, "topP | must be a number above 0 and up to 1"],
  [{ seed: 0.5 }, "seed | must be a whole number"],
  [{ stopSequences: "END" }, "stopSequences | must be a list of texts"],
  [{ stopSequences: [""] }, "stopSequences | must be a list of texts"],
  [{ cache: "no" }, "cache | must be true or false"],
])("%j is a problem of a stage and of a router", (settings, problem) => {
  const states = [
    stage({ ...common, completionSchema, ...settings }),
    router({ prompt: "Choose.", targets: ["a"], ...settings }),
  ];
  for (const { spec } of states)
    expect((spec.problems ?? []).map(({ path, message }) => `${path} | ${message}`)).toEqual([
      expect.stringContaining(problem),
    ]);
});

test("the fallback models of a router are settings of its calls, as those of a stage", () => {
  const fallbackModels = ["openai/gpt-5-mini"];
  for (const { spec } of [
    stage({ ...common, completionSchema, fallbackModels }),
    router({ prompt: "Choose.", targets: ["a"], fallbackModels }),
  ])
    expect(spec.options).toMatchObject({ fallbackModels });
});
