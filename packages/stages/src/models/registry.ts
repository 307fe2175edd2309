import { resolve } from "node:path";
import type { LanguageModelV2, LanguageModelV3, LanguageModelV4 } from "@ai-sdk/provider";
import { SluiceError } from "@sluice/core";
import { didYouMean } from "@sluice/core/runtime";
import type { ResolvedModel } from "./model.ts";
import { resolveAnthropic } from "./providers/anthropic.ts";
import { resolveGateway } from "./providers/gateway.ts";
import { resolveGoogle } from "./providers/google.ts";
import { resolveOllama } from "./providers/ollama.ts";
import { resolveOpenAI } from "./providers/openai.ts";
import { resolveOpenAICompatible } from "./providers/openai-compatible.ts";
import { immutable, invalidModel, type ModelOptions } from "./providers/settings.ts";

/** A model object of any version of the AI SDK's provider interface. */
export type ModelObject = LanguageModelV4 | LanguageModelV3 | LanguageModelV2;

/** What a provider needs, for help texts and `doctor`. */
export interface ProviderInfo {
  readonly name: string;
  /** The form of its ids. */
  readonly form: string;
  /** The npm package that implements it; absent if it is built in. */
  readonly package?: string;
  /** Environment variables it reads. */
  readonly variables: readonly { readonly name: string; readonly required: boolean }[];
}

const OPENAI_VARIABLES: ProviderInfo["variables"] = [
  { name: "OPENAI_API_KEY", required: true },
  { name: "OPENAI_BASE_URL", required: false },
  { name: "OPENAI_ORG_ID", required: false },
  { name: "OPENAI_PROJECT_ID", required: false },
];

export const MODEL_PROVIDERS: readonly ProviderInfo[] = [
  {
    name: "anthropic",
    form: "anthropic/<model>",
    package: "@ai-sdk/anthropic",
    variables: [
      { name: "ANTHROPIC_API_KEY", required: true },
      { name: "ANTHROPIC_BASE_URL", required: false },
    ],
  },
  {
    name: "openai",
    form: "openai/<model>",
    package: "@ai-sdk/openai",
    variables: OPENAI_VARIABLES,
  },
  {
    name: "openai-chat",
    form: "openai-chat/<model>",
    package: "@ai-sdk/openai",
    variables: OPENAI_VARIABLES,
  },
  {
    name: "google",
    form: "google/<model>",
    package: "@ai-sdk/google",
    variables: [
      { name: "GOOGLE_GENERATIVE_AI_API_KEY", required: true },
      { name: "GOOGLE_GENERATIVE_AI_BASE_URL", required: false },
    ],
  },
  {
    name: "gateway",
    form: "gateway/<provider>/<model>",
    package: "@ai-sdk/gateway",
    variables: [
      { name: "AI_GATEWAY_API_KEY", required: true },
      { name: "AI_GATEWAY_BASE_URL", required: false },
    ],
  },
  {
    name: "ollama",
    form: "ollama/<model>",
    package: "@ai-sdk/openai-compatible",
    variables: [
      { name: "OLLAMA_HOST", required: false },
      { name: "OLLAMA_API_KEY", required: false },
    ],
  },
  {
    name: "openai-compatible",
    form: "openai-compatible/<model>",
    package: "@ai-sdk/openai-compatible",
    variables: [
      { name: "OPENAI_COMPATIBLE_BASE_URL", required: true },
      { name: "OPENAI_COMPATIBLE_API_KEY", required: false },
    ],
  },
  { name: "scripted", form: "scripted:<file>", variables: [] },
  { name: "cassette", form: "cassette:<file>", variables: [] },
];

/**
 * Resolves a model id or a model object. Loads only the package of its provider. Throws Validation `unknown_provider`,
 * `invalid_model`, `invalid_base_url`, `script_not_found`, `invalid_script` and the errors of `playbackModel`; Session
 * `missing_key`, `missing_base_url` and `provider_not_installed`.
 */
export async function resolveModel(model: string | ModelObject, options: ModelOptions): Promise<ResolvedModel> {
  if (typeof model !== "string") return resolveObject(model, options);
  const scripted = /^scripted:(.*)$/su.exec(model);
  if (scripted !== null) return resolveScript(model, scripted[1] ?? "", options);
  const cassette = /^cassette:(.*)$/su.exec(model);
  if (cassette !== null) return resolveCassette(model, cassette[1] ?? "", options);
  const slash = model.indexOf("/");
  const provider = slash < 0 ? model : model.slice(0, slash);
  const name = slash < 0 ? "" : model.slice(slash + 1);
  switch (provider) {
    case "anthropic":
      return resolveAnthropic(model, modelName(model, name), options);
    case "openai":
      return resolveOpenAI("responses", model, modelName(model, name), options);
    case "openai-chat":
      return resolveOpenAI("chat", model, modelName(model, name), options);
    case "google":
      return resolveGoogle(model, modelName(model, name), options);
    case "gateway":
      return resolveGateway(model, modelName(model, name), options);
    case "ollama":
      return resolveOllama(model, modelName(model, name), options);
    case "openai-compatible":
      return resolveOpenAICompatible(model, modelName(model, name), options);
    default:
      throw unknownProvider(model);
  }
}

async function resolveScript(id: string, file: string, options: ModelOptions): Promise<ResolvedModel> {
  if (file === "") throw invalidModel(`${JSON.stringify(id)} names no file; write scripted:<file>`);
  const [{ loadScript }, { scriptedModel }] = await Promise.all([import("./script.ts"), import("./scripted.ts")]);
  return scriptedModel(await loadScript(resolve(options.cwd, file)), { id, clock: options.clock });
}

async function resolveCassette(id: string, file: string, { cwd, env, clock }: ModelOptions): Promise<ResolvedModel> {
  if (file === "") throw invalidModel(`${JSON.stringify(id)} names no file; write cassette:<file>`);
  const { playbackModel } = await import("./cassettes/playback.ts");
  return await playbackModel(resolve(cwd, file), { cwd, env, clock });
}

async function resolveObject(model: ModelObject, options: ModelOptions): Promise<ResolvedModel> {
  switch (model?.specificationVersion) {
    case "v4":
      return immutable(`${model.provider}/${model.modelId}`, model, [], options);
    case "v3":
    case "v2": {
      // `wrapLanguageModel` adapts older versions, even with no middleware. For v2 it warns once on stderr.
      const { wrapLanguageModel } = await import("ai");
      return immutable(`${model.provider}/${model.modelId}`, wrapLanguageModel({ model, middleware: [] }), [], options);
    }
    default:
      throw invalidModel(
        "a model is an id such as anthropic/<model>, or a model object of an AI SDK provider (v2, v3 or v4)",
      );
  }
}

function modelName(id: string, name: string): string {
  if (name.trim() === "")
    throw invalidModel(`${JSON.stringify(id)} names no model; write ${id.replace(/\/.*$/s, "")}/<model>`);
  return name;
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
