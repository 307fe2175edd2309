import type { ResolvedModel } from "../model.ts";
import { fetchHere } from "./fetch.ts";
import {
  accessOf,
  baseUrl,
  immutable,
  loadProvider,
  type ModelOptions,
  requireKey,
  setting,
  versioned,
  withDefaults,
} from "./settings.ts";

const HOME = "https://api.openai.com/v1";

/** Without storage at the provider, replies contain encrypted reasoning, which keeps the transcript complete. */
export const OPENAI_STATELESS = { store: false } as const;

/** `openai/<name>` over the Responses API, `openai-chat/<name>` over chat completions. */
export async function resolveOpenAI(
  api: "responses" | "chat",
  id: string,
  name: string,
  options: ModelOptions,
): Promise<ResolvedModel> {
  const apiKey = requireKey(id, options, "OPENAI_API_KEY");
  // Always set, because the package would otherwise read the process's environment.
  const baseURL = versioned(baseUrl(options, "openai", "OPENAI_BASE_URL") ?? new URL(HOME), "/v1");
  const { createOpenAI } = await loadProvider("@ai-sdk/openai", () => import("@ai-sdk/openai"));
  const organization = setting(options.env, "OPENAI_ORG_ID");
  const project = setting(options.env, "OPENAI_PROJECT_ID");
  const provider = createOpenAI({
    apiKey,
    baseURL,
    fetch: fetchHere,
    ...(organization === undefined ? {} : { organization }),
    ...(project === undefined ? {} : { project }),
  });
  const model =
    api === "chat" ? provider.chat(name) : withDefaults(provider.responses(name), { openai: OPENAI_STATELESS });
  const access = accessOf(options, "openai", baseURL, { address: "OPENAI_BASE_URL", key: "OPENAI_API_KEY" });
  return immutable(id, model, { secrets: [apiKey], access });
}
