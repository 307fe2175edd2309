import type { LanguageModelV4, LanguageModelV4CallOptions, SharedV4ProviderOptions } from "@ai-sdk/provider";
import { SluiceError } from "@sluice/core";
import type { ResolvedModel } from "./model.ts";
import { baseUrl, loadProvider, type ModelOptions, setting, steady, trimmedUrl } from "./provider-settings.ts";

const HOME = "https://api.anthropic.com";

/** `anthropic/<name>`. Reads ANTHROPIC_API_KEY and ANTHROPIC_BASE_URL, which may end in `/v1` or not. */
export async function resolveAnthropic(id: string, name: string, options: ModelOptions): Promise<ResolvedModel> {
  const apiKey = setting(options.env, "ANTHROPIC_API_KEY");
  if (apiKey === undefined) {
    const detail = { variables: ["ANTHROPIC_API_KEY"] };
    throw new SluiceError("Session", "missing_key", `${id} needs a key: set ANTHROPIC_API_KEY`, { detail });
  }
  // Always given, since the package would read the variable of the process otherwise.
  const url = baseUrl(options, "anthropic", "ANTHROPIC_BASE_URL") ?? new URL(HOME);
  const { createAnthropic } = await loadProvider("@ai-sdk/anthropic", () => import("@ai-sdk/anthropic"));
  // Anthropic's own clients take the address without a version, the package wants it with one.
  const address = trimmedUrl(url);
  const baseURL = /\/v\d+$/.test(address) ? address : `${address}/v1`;
  const model = createAnthropic({ apiKey, baseURL }).languageModel(name);
  // Proxies refuse request fields they do not know, so the cache is asked for at home only.
  const cache = options.promptCache !== false && url.origin === HOME;
  return steady(id, withDefaults(model, cache), [apiKey]);
}

/** The same model with our defaults for its options; what a call says itself wins. */
function withDefaults(model: LanguageModelV4, cache: boolean): LanguageModelV4 {
  const defaults = {
    // Arguments are only used when they are complete; eager streaming would skip their check and proxies refuse its flag.
    toolStreaming: false,
    ...(cache ? { cacheControl: { type: "ephemeral" } } : {}),
  };
  const merged = (call: LanguageModelV4CallOptions): LanguageModelV4CallOptions => {
    const providerOptions: SharedV4ProviderOptions = {
      ...call.providerOptions,
      anthropic: { ...defaults, ...call.providerOptions?.anthropic },
    };
    return { ...call, providerOptions };
  };
  return {
    specificationVersion: "v4",
    provider: model.provider,
    modelId: model.modelId,
    supportedUrls: model.supportedUrls,
    doGenerate: (call) => model.doGenerate(merged(call)),
    doStream: (call) => model.doStream(merged(call)),
  };
}
