import { SluiceError } from "@sluice/core";
import type { ResolvedModel } from "../model.ts";
import { fetchHere } from "./fetch.ts";
import { accessOf, baseUrl, immutable, loadProvider, type ModelOptions, setting, versioned } from "./settings.ts";

const ADDRESS = "OPENAI_COMPATIBLE_BASE_URL";

/** `openai-compatible/<name>`. Reads OPENAI_COMPATIBLE_BASE_URL (an address without a path means `/v1`) and OPENAI_COMPATIBLE_API_KEY. */
export async function resolveOpenAICompatible(id: string, name: string, options: ModelOptions): Promise<ResolvedModel> {
  const url = baseUrl(options, "openai-compatible", ADDRESS);
  if (url === undefined) {
    const message = `${id} needs the server's address: set ${ADDRESS} (for example http://127.0.0.1:11434/v1)`;
    throw new SluiceError("Session", "missing_base_url", message, { detail: { variables: [ADDRESS] } });
  }
  return await compatibleModel(id, name, options, {
    provider: "openai-compatible",
    baseURL: versioned(url, "/v1"),
    addressVariable: ADDRESS,
    keyVariable: "OPENAI_COMPATIBLE_API_KEY",
  });
}

interface CompatibleServer {
  readonly provider: string;
  readonly baseURL: string;
  /** The variable of the server's address. */
  readonly addressVariable: string;
  /** The variable of a key that the server may need. */
  readonly keyVariable: string;
  /** Changes the messages of a request. */
  readonly messages?: (messages: unknown) => unknown;
}

/** A model of a server with OpenAI's chat API. */
export async function compatibleModel(
  id: string,
  name: string,
  options: ModelOptions,
  { provider, baseURL, addressVariable, keyVariable, messages = (sent) => sent }: CompatibleServer,
): Promise<ResolvedModel> {
  const apiKey = setting(options.env, keyVariable);
  const load = (): Promise<typeof import("@ai-sdk/openai-compatible")> => import("@ai-sdk/openai-compatible");
  const { createOpenAICompatible } = await loadProvider("@ai-sdk/openai-compatible", load);
  const model = createOpenAICompatible({
    name: provider,
    baseURL,
    includeUsage: true,
    fetch: fetchHere,
    transformRequestBody: (body) => ({ ...body, messages: messages(body.messages) }),
    ...(apiKey === undefined ? {} : { apiKey }),
  }).languageModel(name);
  const access = accessOf(options, provider, baseURL, { address: addressVariable, key: keyVariable });
  return immutable(id, model, { secrets: apiKey === undefined ? [] : [apiKey], access });
}
