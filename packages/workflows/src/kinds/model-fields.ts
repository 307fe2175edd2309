import type { ModelSettings, ProviderFaultOptions } from "@sluice/core";
import { z } from "zod";
import { onlyGiven } from "./fields.ts";

const json = z.json();

const attempts = z.int().min(1).describe("Attempts in all. Default: as many as fit into the time.").optional();
const elapsed = z.number().min(0).describe("Milliseconds from the first fault. Default: 300000.").optional();
const initial = z.number().min(0).describe("Milliseconds before the second attempt. Default: 1000.").optional();
const factor = z.number().min(1).describe("How much longer each wait is than the one before. Default: 2.").optional();
const RETRY = "Retries of a model call whose provider fails.";

/** How the model of an agent is called, in every format. */
export const modelFields = {
  top_p: z
    .number()
    .gt(0)
    .max(1)
    .describe("Nucleus sampling: the share of the probability from which tokens are drawn.")
    .optional(),
  seed: z
    .int()
    .describe("Calls with the same seed and prompt get the same reply, as far as the provider can.")
    .optional(),
  stop_sequences: z
    .array(z.string().min(1))
    .describe("Texts at which the model stops. The reply ends before them.")
    .optional(),
  reasoning: z
    .enum(["none", "minimal", "low", "medium", "high", "xhigh"])
    .describe("The effort of a reasoning model. Default: the provider's.")
    .optional(),
  tool_choice: z
    .enum(["auto", "required"])
    .describe("`required`: the model has to call a tool in every turn. Default: `auto`.")
    .optional(),
  provider_options: z
    .record(z.string(), z.record(z.string(), json))
    .describe("Options of the provider's package, by provider: `{ openai: { serviceTier: flex } }`.")
    .optional(),
  fallback_models: z
    .array(z.string().min(1))
    .describe("Models that take its place, in this order, when the provider of the one before fails for long.")
    .optional(),
  retry: z
    .strictObject({ max_attempts: attempts, max_elapsed_ms: elapsed, initial_ms: initial, factor })
    .describe(RETRY)
    .optional(),
  on_provider_fault: z
    .enum(["suspend", "fail"])
    .describe(
      "What follows when a provider fails for longer than its retries, or refuses the key or the account: the run is suspended, or the state fails. Default: `suspend`.",
    )
    .optional(),
  cache: z.boolean().describe("Whether the provider may cache the prompt. Default: `true`.").optional(),
};

/** The same in the spelling of Markdown files, which is that of the options. */
export const stageModelFields = {
  topP: modelFields.top_p,
  seed: modelFields.seed,
  stopSequences: modelFields.stop_sequences,
  reasoning: modelFields.reasoning,
  toolChoice: modelFields.tool_choice,
  providerOptions: modelFields.provider_options,
  fallbackModels: modelFields.fallback_models,
  retry: z
    .strictObject({ maxAttempts: attempts, maxElapsedMs: elapsed, initialMs: initial, factor })
    .describe(RETRY)
    .optional(),
  onProviderFault: modelFields.on_provider_fault,
  cache: modelFields.cache,
};

type ModelFields = z.infer<z.ZodObject<typeof modelFields>>;

/** The same as options of a stage. Absent fields stay absent. */
export function modelSettings(
  fields: ModelFields,
): Omit<ModelSettings, "model" | "temperature" | "maxOutputTokens"> & ProviderFaultOptions {
  const { seed, reasoning, retry, cache } = fields;
  return onlyGiven({
    topP: fields.top_p,
    seed,
    stopSequences: fields.stop_sequences,
    reasoning,
    toolChoice: fields.tool_choice,
    providerOptions: fields.provider_options,
    fallbackModels: fields.fallback_models,
    retry: retry === undefined ? undefined : retryOf(retry),
    onProviderFault: fields.on_provider_fault,
    cache,
  });
}

/** The fields of `retry`, and the options that they are. */
export const RETRY_FIELDS = [
  ["max_attempts", "maxAttempts"],
  ["max_elapsed_ms", "maxElapsedMs"],
  ["initial_ms", "initialMs"],
  ["factor", "factor"],
] as const;

function retryOf(fields: NonNullable<ModelFields["retry"]>): NonNullable<ProviderFaultOptions["retry"]> {
  return Object.fromEntries(
    RETRY_FIELDS.flatMap(([name, option]) => (fields[name] === undefined ? [] : [[option, fields[name]]])),
  );
}
