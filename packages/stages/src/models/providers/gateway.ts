import type { SharedV4ProviderOptions } from "@ai-sdk/provider";
import type { ResolvedModel } from "../model.ts";
import { ANTHROPIC_WHOLE_ARGUMENTS } from "./anthropic.ts";
import { fetchHere } from "./fetch.ts";
import { OPENAI_STATELESS } from "./openai.ts";
import {
  accessOf,
  baseUrl,
  immutable,
  invalidModel,
  loadProvider,
  type ModelOptions,
  requireKey,
  versioned,
  withDefaults,
} from "./settings.ts";

const HOME = "https://ai-gateway.vercel.sh/v4/ai";

/** `gateway/<provider>/<name>`: Vercel's hosted gateway. Reads AI_GATEWAY_API_KEY and AI_GATEWAY_BASE_URL (an address without a path means `/v4/ai`). */
export async function resolveGateway(id: string, name: string, options: ModelOptions): Promise<ResolvedModel> {
  if (!/^[^/]+\/./su.test(name)) {
    throw invalidModel(`${JSON.stringify(id)} names no provider behind the gateway; write gateway/<provider>/<model>`);
  }
  const apiKey = requireKey(id, options, "AI_GATEWAY_API_KEY");
  const baseURL = versioned(baseUrl(options, "gateway", "AI_GATEWAY_BASE_URL") ?? new URL(HOME), "/v4/ai");
  const { createGateway } = await loadProvider("@ai-sdk/gateway", () => import("@ai-sdk/gateway"));
  const model = createGateway({ apiKey, baseURL, fetch: fetchWithoutDeployment }).languageModel(name);
  const access = accessOf(options, "gateway", baseURL, { address: "AI_GATEWAY_BASE_URL", key: "AI_GATEWAY_API_KEY" });
  const plain = withDefaults(model, defaultsFor(name, false));
  const cached = options.promptCache === false ? plain : withDefaults(model, defaultsFor(name, true));
  return immutable(id, cached, { secrets: [apiKey], access, uncached: plain });
}

/** The gateway forwards these options, so that a model behaves as when it is called directly. */
function defaultsFor(name: string, cache: boolean): SharedV4ProviderOptions {
  const gateway: SharedV4ProviderOptions = cache ? { gateway: { caching: "auto" } } : {};
  if (name.startsWith("openai/")) return { ...gateway, openai: OPENAI_STATELESS };
  if (name.startsWith("anthropic/")) return { ...gateway, anthropic: ANTHROPIC_WHOLE_ARGUMENTS };
  return gateway;
}

/** Removes the headers in which the package sends deployment details from the process's environment. */
const fetchWithoutDeployment: typeof fetch = (input, init) => {
  const headers = new Headers(init?.headers);
  for (const name of [...headers.keys()]) if (name.startsWith("ai-o11y-")) headers.delete(name);
  return fetchHere(input, { ...init, headers });
};
