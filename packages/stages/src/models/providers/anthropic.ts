import type { ResolvedModel } from "../model.ts";
import { accessOf } from "./access.ts";
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
  // Only for Anthropic's own address, because proxies reject unknown fields.
  const cache = options.promptCache !== false && url.origin === HOME;
  const anthropic = { ...ANTHROPIC_WHOLE_ARGUMENTS, ...(cache ? { cacheControl: { type: "ephemeral" } } : {}) };
  // The API requires a maximum; the package knows those of Claude models.
  const maximum = name.includes("claude-") ? undefined : UNKNOWN_MODEL_MAX_OUTPUT_TOKENS;
  const access = accessOf(options, "anthropic", baseURL, { address: "ANTHROPIC_BASE_URL", key: "ANTHROPIC_API_KEY" });
  return immutable(id, withDefaults(model, { anthropic }, maximum), [apiKey], access);
}
