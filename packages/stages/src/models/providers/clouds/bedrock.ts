import type { SharedV4ProviderOptions } from "@ai-sdk/provider";
import type { ResolvedModel } from "../../model.ts";
import { withFreeChoice } from "../anthropic.ts";
import { cachedModel } from "../cache-marks.ts";
import { fetchFrames } from "../fetch.ts";
import {
  accessOf,
  baseUrl,
  hostPart,
  immutable,
  loadProvider,
  type ModelOptions,
  missingKey,
  requireSetting,
  setting,
  trimmedUrl,
} from "../settings.ts";

const ENDPOINT = "AWS_ENDPOINT_URL_BEDROCK_RUNTIME";

/** Bedrock's form of a cache mark. */
const MARK: SharedV4ProviderOptions = { bedrock: { cachePoint: { type: "default" } } };
/** Claude models that Bedrock caches for; it rejects the marks for others. */
const CACHED = /anthropic\.claude-(?!v\d|instant|3-sonnet|3-haiku|3-opus|3-5-sonnet)/;

/**
 * `bedrock/<model id>`: the Converse API of Amazon Bedrock. Reads AWS_REGION and either AWS_BEARER_TOKEN_BEDROCK or AWS_ACCESS_KEY_ID,
 * AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN. Profiles and SSO are not read.
 */
export async function resolveBedrock(id: string, name: string, options: ModelOptions): Promise<ResolvedModel> {
  const region = hostPart(requireSetting(id, options, "AWS_REGION"), "AWS_REGION");
  const url = baseUrl(options, "bedrock", ENDPOINT);
  const address = url === undefined ? endpointIn(region) : trimmedUrl(url);
  const credentials = credentialsOf(id, options);
  const { createAmazonBedrock } = await loadProvider("@ai-sdk/amazon-bedrock", () => import("@ai-sdk/amazon-bedrock"));
  const { secrets, ...keys } = credentials;
  const model = createAmazonBedrock({
    region,
    baseURL: address,
    fetch: fetchFrames,
    // All are set, because the package would otherwise read the process's environment.
    ...keys,
  }).languageModel(name);
  const access = accessOf(options, "bedrock", address, {
    address: "AWS_REGION",
    key: keys.apiKey === "" ? "AWS_ACCESS_KEY_ID" : "AWS_BEARER_TOKEN_BEDROCK",
  });
  const known = { secrets, access };
  if (!name.includes("anthropic.claude")) return immutable(id, model, known);
  const claude = withFreeChoice(model);
  return CACHED.test(name) ? cachedModel(id, claude, MARK, options, known) : immutable(id, claude, known);
}

function endpointIn(region: string): string {
  return `https://bedrock-runtime.${region}.amazonaws.com${region.startsWith("cn-") ? ".cn" : ""}`;
}

function credentialsOf(id: string, options: ModelOptions) {
  const { env } = options;
  const apiKey = setting(env, "AWS_BEARER_TOKEN_BEDROCK");
  if (apiKey !== undefined) return { apiKey, secrets: [apiKey] };
  const accessKeyId = setting(env, "AWS_ACCESS_KEY_ID");
  const secretAccessKey = setting(env, "AWS_SECRET_ACCESS_KEY");
  if (accessKeyId === undefined || secretAccessKey === undefined) {
    const variables = ["AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"];
    throw missingKey(
      `${id} needs a key: set AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY`,
      variables,
    );
  }
  const sessionToken = setting(env, "AWS_SESSION_TOKEN");
  const keys = { apiKey: "", accessKeyId, secretAccessKey };
  return sessionToken === undefined
    ? { ...keys, secrets: [secretAccessKey] }
    : { ...keys, sessionToken, secrets: [secretAccessKey, sessionToken] };
}
