import type { ResolvedModel } from "../model.ts";
import { fetchHere } from "./fetch.ts";
import {
  baseUrl,
  immutable,
  loadProvider,
  type ModelOptions,
  requireKey,
  trimmedUrl,
  withDefaults,
} from "./settings.ts";

const HOME = "https://api.anthropic.com";

/** Arguments are only used when they are complete; eager streaming would skip their check and proxies refuse its flag. */
export const ANTHROPIC_WHOLE_ARGUMENTS = { toolStreaming: false } as const;

/** For names the package does not know, where it would ask for 4096: less than one long file. */
const UNKNOWN_MODEL_MAX_OUTPUT_TOKENS = 8_192;

/** `anthropic/<name>`. Reads ANTHROPIC_API_KEY and ANTHROPIC_BASE_URL, which may end in `/v1` or not. */
export async function resolveAnthropic(id: string, name: string, options: ModelOptions): Promise<ResolvedModel> {
  const apiKey = requireKey(id, options, "ANTHROPIC_API_KEY");
  // Always given, since the package would read the variable of the process otherwise.
  const url = baseUrl(options, "anthropic", "ANTHROPIC_BASE_URL") ?? new URL(HOME);
  const { createAnthropic } = await loadProvider("@ai-sdk/anthropic", () => import("@ai-sdk/anthropic"));
  // Anthropic's own clients take the address without a version, the package wants it with one.
  const address = trimmedUrl(url);
  const baseURL = /\/v\d+$/.test(address) ? address : `${address}/v1`;
  const model = createAnthropic({ apiKey, baseURL, fetch: fetchHere }).languageModel(name);
  // Proxies refuse request fields they do not know, so the cache is asked for at home only.
  const cache = options.promptCache !== false && url.origin === HOME;
  const anthropic = { ...ANTHROPIC_WHOLE_ARGUMENTS, ...(cache ? { cacheControl: { type: "ephemeral" } } : {}) };
  // The API wants a maximum in every request; the package knows that of each Claude model.
  const maximum = name.includes("claude-") ? undefined : UNKNOWN_MODEL_MAX_OUTPUT_TOKENS;
  return immutable(id, withDefaults(model, { anthropic }, maximum), [apiKey], options);
}
