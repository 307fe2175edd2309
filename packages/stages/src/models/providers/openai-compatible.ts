import { SluiceError } from "@sluice/core";
import type { ResolvedModel } from "../model.ts";
import { fetchHere } from "./fetch.ts";
import { baseUrl, immutable, loadProvider, type ModelOptions, setting, versioned } from "./settings.ts";

const ADDRESS = "OPENAI_COMPATIBLE_BASE_URL";

/** `openai-compatible/<name>`. Reads OPENAI_COMPATIBLE_BASE_URL (an address without a path means `/v1`) and OPENAI_COMPATIBLE_API_KEY. */
export async function resolveOpenAICompatible(id: string, name: string, options: ModelOptions): Promise<ResolvedModel> {
  const url = baseUrl(options, "openai-compatible", ADDRESS);
  if (url === undefined) {
    const message = `${id} needs the server's address: set ${ADDRESS} (for example http://127.0.0.1:11434/v1)`;
    throw new SluiceError("Session", "missing_base_url", message, { detail: { variables: [ADDRESS] } });
  }
  const apiKey = setting(options.env, "OPENAI_COMPATIBLE_API_KEY");
  const load = (): Promise<typeof import("@ai-sdk/openai-compatible")> => import("@ai-sdk/openai-compatible");
  const { createOpenAICompatible } = await loadProvider("@ai-sdk/openai-compatible", load);
  const model = createOpenAICompatible({
    name: "openai-compatible",
    baseURL: versioned(url, "/v1"),
    includeUsage: true,
    fetch: fetchHere,
    ...(apiKey === undefined ? {} : { apiKey }),
  }).languageModel(name);
  return immutable(id, model, apiKey === undefined ? [] : [apiKey], options);
}
