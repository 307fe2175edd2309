// Which options of the provider packages a state may set. An option counts as harmless only if it is listed here: a package that adds
// one that lets the provider run tools, read files or keep state would otherwise bypass the permission gate.
import type { Json, JsonObject, Problem } from "@sluice/core";

/** Whether a value of an option is harmless. */
type Accepts = (value: Json) => boolean;

/** The options of a package. */
interface Options {
  /** Those that may have any value. */
  readonly any: readonly string[];
  readonly checked: Readonly<Record<string, Accepts>>;
}

/** Betas that change sizes and prices only. */
const HARMLESS_BETA =
  /^(?:context-1m|interleaved-thinking|output-128k|extended-cache-ttl|token-efficient-tools)-[\d-]+$/;
const betas: Accepts = (value) =>
  Array.isArray(value) && value.every((beta) => typeof beta === "string" && HARMLESS_BETA.test(beta));

const ANTHROPIC: Options = {
  any: [
    ...["thinking", "effort", "sendReasoning", "disableParallelToolUse", "metadata"],
    ...["taskBudget", "speed", "serviceTier", "inferenceGeo", "labels"],
  ],
  checked: { anthropicBeta: betas },
};

const OPENAI: Options = {
  any: [
    ...["parallelToolCalls", "promptCacheKey", "promptCacheOptions", "promptCacheRetention"],
    ...["reasoningEffort", "reasoningMode", "reasoningContext", "reasoningSummary", "forceReasoning"],
    ...["serviceTier", "textVerbosity", "strictJsonSchema", "safetyIdentifier", "user", "metadata"],
    ...["logitBias", "logprobs", "maxCompletionTokens", "prediction"],
  ],
  checked: {
    // Without the system message, the model would not know the rules of its stage.
    systemMessageMode: (value) => value === "system" || value === "developer",
    store: (value) => value === false,
  },
};

/** Without `cachedContent`, since cached content may contain tools that Google runs. */
const GOOGLE: Options = {
  any: [
    ...["thinkingConfig", "safetySettings", "threshold", "structuredOutputs", "mediaResolution", "audioTimestamp"],
    ...["labels", "serviceTier", "sharedRequestType", "requestType"],
  ],
  checked: {},
};

/** Without `additionalModelRequestFields`, which may contain anything. */
const BEDROCK: Options = {
  any: ["reasoningConfig", "serviceTier", "structuredOutputMode"],
  checked: { anthropicBeta: betas },
};

/** Without `models`, since a model that Sluice does not know of could answer, and `byok`, which holds keys. */
const GATEWAY: Options = {
  any: [
    ...["caching", "disallowPromptTraining", "headquarters", "has", "only", "order", "providerTimeouts"],
    ...["quotaEntityId", "serviceTier", "sort", "tags", "user", "zeroDataRetention"],
  ],
  checked: {},
};

/** The package copies every member into the request, so that only known parameters of sampling and reasoning may pass. */
const COMPATIBLE: Options = {
  any: [
    ...["user", "reasoningEffort", "reasoning_effort", "textVerbosity", "verbosity", "strictJsonSchema"],
    ...["top_k", "min_p", "top_a", "typical_p", "tfs_z", "repetition_penalty", "repeat_penalty", "repeat_last_n"],
    ...["logit_bias", "logprobs", "top_logprobs", "mirostat", "mirostat_tau", "mirostat_eta", "xtc_probability"],
    ...["reasoning", "include_reasoning", "enable_thinking", "thinking", "thinking_budget", "think"],
    ...["chat_template_kwargs", "parallel_tool_calls", "service_tier", "priority", "ttl", "keep_alive", "options"],
    ...["cache_prompt", "prompt_cache_key", "safety_identifier", "metadata", "safe_prompt", "provider"],
  ],
  checked: {},
};

/** By the names that the packages read. */
const PROVIDERS: ReadonlyMap<string, Options> = new Map([
  ["anthropic", ANTHROPIC],
  ["openai", OPENAI],
  ["azure", OPENAI],
  ["google", GOOGLE],
  ["vertex", GOOGLE],
  ["googleVertex", GOOGLE],
  ["bedrock", BEDROCK],
  ["amazonBedrock", BEDROCK],
  ["gateway", GATEWAY],
  ["ollama", COMPATIBLE],
  ["openai-compatible", COMPATIBLE],
  ["openaiCompatible", COMPATIBLE],
]);

/** The options that a state may not set, each with its path in `providerOptions`. */
export function optionProblems(given: Readonly<Record<string, JsonObject>>): readonly Problem[] {
  return Object.entries(given).flatMap(([provider, options]): readonly Problem[] => {
    const known = PROVIDERS.get(provider);
    if (known !== undefined)
      return Object.entries(options).flatMap(([name, value]) => {
        const checked = Object.hasOwn(known.checked, name) ? known.checked[name] : undefined;
        const isHarmless = value !== undefined && (checked?.(value) ?? known.any.includes(name));
        return isHarmless ? [] : [refusal(provider, name, known)];
      });
    const message = `is not a provider whose options Sluice knows; known: ${[...PROVIDERS.keys()].join(", ")}`;
    return [{ path: `providerOptions.${provider}`, message, suggestion: OWN_MODEL }];
  });
}

const OWN_MODEL = "set it in a model object of the AI SDK and pass that object as the session's model";

function refusal(provider: string, name: string, { any, checked }: Options): Problem {
  const known = [...any, ...Object.keys(checked)];
  const why = known.includes(name)
    ? "has a value that is not allowed"
    : "is not allowed: it is unknown, or it could let the provider run tools, keep state or change what the model reads";
  const allowed = known.join(", ");
  return { path: `providerOptions.${provider}.${name}`, message: why, suggestion: `allowed: ${allowed}` };
}
