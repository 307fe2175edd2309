import { resolve } from "node:path";
import type { LanguageModelV2, LanguageModelV3, LanguageModelV4 } from "@ai-sdk/provider";
import { SluiceError } from "@sluice/core";
import { didYouMean } from "@sluice/core/runtime";
import type { ResolvedModel } from "./model.ts";
import { immutable, invalidModel, type ModelOptions } from "./providers/settings.ts";

/** A model object of any version of the AI SDK's provider interface. */
export type ModelObject = LanguageModelV4 | LanguageModelV3 | LanguageModelV2;

export interface ProviderVariable {
  readonly name: string;
  readonly required: boolean;
  /** Another variable that makes it unnecessary. */
  readonly unless?: string;
}

/** What a provider needs, for help texts and `doctor`. */
export interface ProviderInfo {
  readonly name: string;
  /** The form of its ids. */
  readonly form: string;
  /** The npm package that implements it; absent if it is built in. */
  readonly package?: string;
  /** Environment variables it reads. */
  readonly variables: readonly ProviderVariable[];
}

const OPENAI_SETTINGS = ["OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"];

export const MODEL_PROVIDERS: readonly ProviderInfo[] = [
  provider("anthropic/<model>", "@ai-sdk/anthropic", ["ANTHROPIC_API_KEY"], ["ANTHROPIC_BASE_URL"]),
  provider("openai/<model>", "@ai-sdk/openai", ["OPENAI_API_KEY"], OPENAI_SETTINGS),
  provider("openai-chat/<model>", "@ai-sdk/openai", ["OPENAI_API_KEY"], OPENAI_SETTINGS),
  provider("google/<model>", "@ai-sdk/google", ["GOOGLE_GENERATIVE_AI_API_KEY"], ["GOOGLE_GENERATIVE_AI_BASE_URL"]),
  provider("gateway/<provider>/<model>", "@ai-sdk/gateway", ["AI_GATEWAY_API_KEY"], ["AI_GATEWAY_BASE_URL"]),
  provider(
    "bedrock/<model>",
    "@ai-sdk/amazon-bedrock",
    ["AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"],
    ["AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK", "AWS_ENDPOINT_URL_BEDROCK_RUNTIME"],
    { AWS_ACCESS_KEY_ID: "AWS_BEARER_TOKEN_BEDROCK", AWS_SECRET_ACCESS_KEY: "AWS_BEARER_TOKEN_BEDROCK" },
  ),
  provider(
    "vertex/<model>",
    "@ai-sdk/google-vertex",
    ["GOOGLE_VERTEX_PROJECT", "GOOGLE_VERTEX_LOCATION"],
    ["GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_VERTEX_API_KEY"],
    { GOOGLE_VERTEX_PROJECT: "GOOGLE_VERTEX_API_KEY", GOOGLE_VERTEX_LOCATION: "GOOGLE_VERTEX_API_KEY" },
  ),
  provider("azure/<deployment>", "@ai-sdk/azure", ["AZURE_API_KEY", "AZURE_RESOURCE_NAME"], []),
  provider("ollama/<model>", "@ai-sdk/openai-compatible", [], ["OLLAMA_HOST", "OLLAMA_API_KEY"]),
  provider(
    "openai-compatible/<model>",
    "@ai-sdk/openai-compatible",
    ["OPENAI_COMPATIBLE_BASE_URL"],
    ["OPENAI_COMPATIBLE_API_KEY"],
  ),
  { name: "scripted", form: "scripted:<file>", variables: [] },
  { name: "cassette", form: "cassette:<file>", variables: [] },
];

function provider(
  form: string,
  npmPackage: string,
  required: readonly string[],
  optional: readonly string[],
  unless: Readonly<Record<string, string>> = {},
): ProviderInfo {
  const variables = [
    ...required.map((name) => {
      const other = unless[name];
      return { name, required: true, ...(other === undefined ? {} : { unless: other }) };
    }),
    ...optional.map((name) => ({ name, required: false })),
  ];
  return { name: form.replace(/\/.*$/, ""), form, package: npmPackage, variables };
}

type Resolve = (id: string, name: string, options: ModelOptions) => Promise<ResolvedModel>;

/** By the part of a model id before the first slash. */
const RESOLVERS: ReadonlyMap<string, Resolve> = new Map<string, Resolve>([
  ["anthropic", async (...call) => (await import("./providers/anthropic.ts")).resolveAnthropic(...call)],
  ["openai", async (...call) => (await import("./providers/openai.ts")).resolveOpenAI("responses", ...call)],
  ["openai-chat", async (...call) => (await import("./providers/openai.ts")).resolveOpenAI("chat", ...call)],
  ["google", async (...call) => (await import("./providers/google.ts")).resolveGoogle(...call)],
  ["gateway", async (...call) => (await import("./providers/gateway.ts")).resolveGateway(...call)],
  ["bedrock", async (...call) => (await import("./providers/clouds/bedrock.ts")).resolveBedrock(...call)],
  ["vertex", async (...call) => (await import("./providers/clouds/vertex.ts")).resolveVertex(...call)],
  ["azure", async (...call) => (await import("./providers/clouds/azure.ts")).resolveAzure(...call)],
  ["ollama", async (...call) => (await import("./providers/ollama.ts")).resolveOllama(...call)],
  [
    "openai-compatible",
    async (...call) => (await import("./providers/openai-compatible.ts")).resolveOpenAICompatible(...call),
  ],
]);

/**
 * Resolves a model id or a model object. Loads only the package of its provider. Throws Validation `unknown_provider`,
 * `invalid_model`, `invalid_base_url`, `script_not_found`, `invalid_script` and the errors of `playbackModel`; Session
 * `missing_key`, `missing_base_url` and `provider_not_installed`.
 */
export async function resolveModel(model: string | ModelObject, options: ModelOptions): Promise<ResolvedModel> {
  if (typeof model !== "string") return resolveObject(model);
  const [, source, file = ""] = /^(scripted|cassette):(.*)$/su.exec(model) ?? [];
  if (source !== undefined && file === "")
    throw invalidModel(`${JSON.stringify(model)} names no file; write ${source}:<file>`);
  if (source === "scripted") return resolveScript(model, file, options);
  if (source === "cassette") return resolveCassette(file, options);
  const [, provider = model, name = ""] = /^([^/]*)\/(.*)$/su.exec(model) ?? [];
  const resolveModelOf = RESOLVERS.get(provider);
  if (resolveModelOf === undefined) throw unknownProvider(model);
  if (name.trim() === "") throw invalidModel(`${JSON.stringify(model)} names no model; write ${provider}/<model>`);
  return resolveModelOf(model, name, options);
}

async function resolveScript(id: string, file: string, options: ModelOptions): Promise<ResolvedModel> {
  const [{ loadScript }, { scriptedModel }] = await Promise.all([import("./script.ts"), import("./scripted.ts")]);
  return scriptedModel(await loadScript(resolve(options.cwd, file)), { id, clock: options.clock });
}

async function resolveCassette(file: string, { cwd, env, clock }: ModelOptions): Promise<ResolvedModel> {
  const { playbackModel } = await import("./cassettes/playback.ts");
  return await playbackModel(resolve(cwd, file), { cwd, env, clock });
}

async function resolveObject(model: ModelObject): Promise<ResolvedModel> {
  switch (model?.specificationVersion) {
    case "v4":
      return immutable(`${model.provider}/${model.modelId}`, model, { secrets: [] });
    case "v3":
    case "v2": {
      // `wrapLanguageModel` adapts older versions, even with no middleware. For v2 it warns once on stderr.
      const { wrapLanguageModel } = await import("ai");
      return immutable(`${model.provider}/${model.modelId}`, wrapLanguageModel({ model, middleware: [] }), {
        secrets: [],
      });
    }
    default:
      throw invalidModel(
        "a model is an id such as anthropic/<model>, or a model object of an AI SDK provider (v2, v3 or v4)",
      );
  }
}

/** Names of models without their provider. */
const FAMILIES: readonly (readonly [RegExp, string])[] = [
  [/^claude-[\w.-]+$/, "anthropic"],
  [/^gpt-[\w.-]+$/, "openai"],
  [/^gemini-[\w.-]+$/, "google"],
];

function unknownProvider(id: string): SluiceError {
  const names = MODEL_PROVIDERS.map((info) => info.name);
  const prefix = id.replace(/[/:].*$/su, "").toLowerCase();
  // A prefix of a long name has too large an edit distance for `didYouMean`.
  const meant =
    didYouMean(prefix, names) ??
    names.find((name) => name === prefix || (prefix.length > 3 && name.startsWith(prefix)));
  const family = FAMILIES.find(([pattern]) => pattern.test(id))?.[1];
  const hint =
    family === undefined
      ? MODEL_PROVIDERS.filter((info) => info.name === meant).map((info) => ` Did you mean ${info.form}?`)
      : [` Did you mean ${family}/${id}?`];
  const known = MODEL_PROVIDERS.map((info) => info.form).join(", ");
  const message = `no provider for the model ${JSON.stringify(id)}.${hint.join("")} Known: ${known}. Use openai-compatible for any server with OpenAI's chat API.`;
  return new SluiceError("Validation", "unknown_provider", message, { detail: { model: id, known: names } });
}
