import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4StreamPart,
  SharedV4Warning,
} from "@ai-sdk/provider";
import { isObject } from "@sluice/core/runtime";
import { type ResolvedModel, withCalls } from "../model.ts";
import { ANTHROPIC_MARK, cachedModel } from "./cache-marks.ts";
import { fetchHere } from "./fetch.ts";
import {
  accessOf,
  baseUrl,
  loadProvider,
  type ModelOptions,
  requireKey,
  trimmedUrl,
  withDefaults,
} from "./settings.ts";

const HOME = "https://api.anthropic.com";

/** Only complete arguments are used; eager streaming would skip validation, and proxies reject its flag. */
export const ANTHROPIC_WHOLE_ARGUMENTS = { toolStreaming: false } as const;

/** For models that the package does not know, whose default of 4096 is less than one long file. */
const UNKNOWN_MODEL_MAX_OUTPUT_TOKENS = 8_192;

/** `anthropic/<name>`. Reads ANTHROPIC_API_KEY and ANTHROPIC_BASE_URL, which may end in `/v1` or not. */
export async function resolveAnthropic(id: string, name: string, options: ModelOptions): Promise<ResolvedModel> {
  const apiKey = requireKey(id, options, "ANTHROPIC_API_KEY");
  // Always set, because the package would otherwise read the process's environment.
  const url = baseUrl(options, "anthropic", "ANTHROPIC_BASE_URL") ?? new URL(HOME);
  const { createAnthropic } = await loadProvider("@ai-sdk/anthropic", () => import("@ai-sdk/anthropic"));
  // Anthropic's own clients expect the address without a version, the package with one.
  const address = trimmedUrl(url);
  const baseURL = /\/v\d+$/.test(address) ? address : `${address}/v1`;
  const model = createAnthropic({ apiKey, baseURL, fetch: fetchHere }).languageModel(name);
  const access = accessOf(options, "anthropic", baseURL, { address: "ANTHROPIC_BASE_URL", key: "ANTHROPIC_API_KEY" });
  return cachedModel(id, claude(model, name), ANTHROPIC_MARK, options, { secrets: [apiKey], access });
}

/** A model of Anthropic's Messages API with the defaults of every host. */
export function claude(model: LanguageModelV4, name: string): LanguageModelV4 {
  // The API requires a maximum; the package knows those of Claude models.
  const maximum = name.includes("claude-") ? undefined : UNKNOWN_MODEL_MAX_OUTPUT_TOKENS;
  return withFreeChoice(withDefaults(model, { anthropic: ANTHROPIC_WHOLE_ARGUMENTS }, maximum));
}

/** The API rejects a forced tool call of a model that thinks, so the model may then choose. */
export function withFreeChoice(model: LanguageModelV4): LanguageModelV4 {
  const allowed = (call: LanguageModelV4CallOptions): LanguageModelV4CallOptions => {
    if (call.toolChoice?.type !== "required" || !thinks(call)) return call;
    return { ...call, toolChoice: { type: "auto" } };
  };
  const warning = {
    type: "unsupported",
    feature: "toolChoice",
    details: "a model that thinks cannot be forced",
  } as const;
  const isFreed = (call: LanguageModelV4CallOptions): boolean => allowed(call) !== call;
  return withCalls(model, {
    doGenerate: async (call) => {
      const result = await model.doGenerate(allowed(call));
      return isFreed(call) ? { ...result, warnings: [...result.warnings, warning] } : result;
    },
    doStream: async (call) => {
      const result = await model.doStream(allowed(call));
      return isFreed(call) ? { ...result, stream: result.stream.pipeThrough(warningAtStart(warning)) } : result;
    },
  });
}

function thinks({ reasoning, providerOptions }: LanguageModelV4CallOptions): boolean {
  const thinking = providerOptions?.anthropic?.thinking ?? providerOptions?.bedrock?.reasoningConfig;
  if (isObject(thinking)) return thinking.type !== "disabled";
  return reasoning !== undefined && reasoning !== "none" && reasoning !== "provider-default";
}

/** Adds a warning to those that a stream starts with. */
function warningAtStart(
  warning: SharedV4Warning,
): TransformStream<LanguageModelV4StreamPart, LanguageModelV4StreamPart> {
  return new TransformStream({
    transform: (part, controller) =>
      controller.enqueue(part.type === "stream-start" ? { ...part, warnings: [...part.warnings, warning] } : part),
  });
}
