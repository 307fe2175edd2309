import type { ResolvedModel } from "../model.ts";
import { fetchHere } from "./fetch.ts";
import { accessOf, baseUrl, immutable, loadProvider, type ModelOptions, requireKey, versioned } from "./settings.ts";

const HOME = "https://generativelanguage.googleapis.com/v1beta";

/** `google/<name>`: the Gemini API. Reads GOOGLE_GENERATIVE_AI_API_KEY and GOOGLE_GENERATIVE_AI_BASE_URL (an address without a path means `/v1beta`). */
export async function resolveGoogle(id: string, name: string, options: ModelOptions): Promise<ResolvedModel> {
  const apiKey = requireKey(id, options, "GOOGLE_GENERATIVE_AI_API_KEY");
  const baseURL = versioned(baseUrl(options, "google", "GOOGLE_GENERATIVE_AI_BASE_URL") ?? new URL(HOME), "/v1beta");
  const { createGoogle } = await loadProvider("@ai-sdk/google", () => import("@ai-sdk/google"));
  const variables = { address: "GOOGLE_GENERATIVE_AI_BASE_URL", key: "GOOGLE_GENERATIVE_AI_API_KEY" };
  const access = accessOf(options, "google", baseURL, variables);
  return immutable(id, createGoogle({ apiKey, baseURL, fetch: fetchHere }).languageModel(name), {
    secrets: [apiKey],
    access,
  });
}
