import type { LanguageModelV4, LanguageModelV4CallOptions } from "@ai-sdk/provider";
import { type ResolvedModel, withCalls } from "../../model.ts";
import { fetchHere } from "../fetch.ts";
import { OPENAI_STATELESS } from "../openai.ts";
import {
  accessOf,
  configuredUrl,
  hostPart,
  immutable,
  loadProvider,
  type ModelOptions,
  requireKey,
  requireSetting,
  versioned,
} from "../settings.ts";

/**
 * `azure/<deployment>`: the Responses API of Azure OpenAI. Reads AZURE_API_KEY and AZURE_RESOURCE_NAME; a configured base URL
 * replaces the resource (an address without a path means `/openai/v1`).
 */
export async function resolveAzure(id: string, name: string, options: ModelOptions): Promise<ResolvedModel> {
  const apiKey = requireKey(id, options, "AZURE_API_KEY");
  const url = configuredUrl(options, "azure") ?? resourceUrl(id, options);
  const { createAzure } = await loadProvider("@ai-sdk/azure", () => import("@ai-sdk/azure"));
  const baseURL = versioned(url, "/openai/v1");
  const model = stateless(createAzure({ apiKey, baseURL, fetch: fetchHere }).responses(name));
  const access = accessOf(options, "azure", baseURL, { address: "AZURE_RESOURCE_NAME", key: "AZURE_API_KEY" });
  return immutable(id, model, { secrets: [apiKey], access });
}

function resourceUrl(id: string, options: ModelOptions): URL {
  const resource = requireSetting(id, options, "AZURE_RESOURCE_NAME");
  return new URL(`https://${hostPart(resource, "AZURE_RESOURCE_NAME")}.openai.azure.com`);
}

/** The package reads either `azure` or `openai`, so both are passed as `azure`. */
function stateless(model: LanguageModelV4): LanguageModelV4 {
  const merged = (call: LanguageModelV4CallOptions): LanguageModelV4CallOptions => {
    const { openai, azure, ...others } = call.providerOptions ?? {};
    return { ...call, providerOptions: { ...others, azure: { ...OPENAI_STATELESS, ...openai, ...azure } } };
  };
  return withCalls(model, {
    doGenerate: (call) => model.doGenerate(merged(call)),
    doStream: (call) => model.doStream(merged(call)),
  });
}
