import { resolve } from "node:path";
import type { LanguageModelV2, LanguageModelV3, LanguageModelV4 } from "@ai-sdk/provider";
import { type Clock, SluiceError } from "@sluice/core";
import type { ResolvedModel } from "./model.ts";

/** A model object of the AI SDK's provider interface, of any version it has had. */
export type ModelObject = LanguageModelV4 | LanguageModelV3 | LanguageModelV2;

export interface ModelOptions {
  /** Where keys and base URLs come from; `process.env` is never read here. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Base URLs from the configuration, by provider. They win over the environment. */
  readonly baseUrls?: Readonly<Record<string, string>>;
  /** Where a relative script path starts. */
  readonly cwd: string;
  /** Times the delays of a scripted model. */
  readonly clock: Clock;
}

/** What a provider needs, for help texts and `doctor`. */
export interface ProviderInfo {
  readonly name: string;
  /** How its ids are written. */
  readonly form: string;
  /** The npm package it is loaded from, when it is not built in. */
  readonly package?: string;
  /** Environment variables it reads. */
  readonly variables: readonly { readonly name: string; readonly required: boolean }[];
}

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
    name: "openai-compatible",
    form: "openai-compatible/<model>",
    package: "@ai-sdk/openai-compatible",
    variables: [
      { name: "OPENAI_COMPATIBLE_BASE_URL", required: true },
      { name: "OPENAI_COMPATIBLE_API_KEY", required: false },
    ],
  },
  { name: "scripted", form: "scripted:<file>", variables: [] },
];

/**
 * A model id, or a model object, as a model that is ready to be called. Only the package of the provider that is asked
 * for is loaded. Errors: Validation `unknown_provider`, `invalid_model`, `invalid_base_url`, `script_not_found` or
 * `invalid_script`; Session `missing_key`, `missing_base_url` or `provider_not_installed`.
 */
export async function resolveModel(model: string | ModelObject, options: ModelOptions): Promise<ResolvedModel> {
  if (typeof model !== "string") return resolveObject(model);
  const scripted = /^scripted:(.*)$/su.exec(model);
  if (scripted !== null) return resolveScript(model, scripted[1] ?? "", options);
  const slash = model.indexOf("/");
  const provider = slash < 0 ? model : model.slice(0, slash);
  const name = slash < 0 ? "" : model.slice(slash + 1);
  switch (provider) {
    case "anthropic":
      return resolveAnthropic(model, modelName(model, name), options);
    case "openai-compatible":
      return resolveOpenAICompatible(model, modelName(model, name), options);
    default:
      throw unknownProvider(model, provider);
  }
}

async function resolveAnthropic(id: string, name: string, options: ModelOptions): Promise<ResolvedModel> {
  const apiKey = setting(options.env, "ANTHROPIC_API_KEY");
  if (apiKey === undefined) throw missingKey(id, "ANTHROPIC_API_KEY");
  // Always given, since the package would read the variable of the process otherwise.
  const url = baseUrl(options, "anthropic", "ANTHROPIC_BASE_URL") ?? new URL("https://api.anthropic.com");
  const { createAnthropic } = await loadProvider("@ai-sdk/anthropic", () => import("@ai-sdk/anthropic"));
  // Anthropic's own clients take the address without a version, the package wants it with one.
  const versioned = /\/v\d+$/.test(trimmed(url)) ? trimmed(url) : `${trimmed(url)}/v1`;
  const model = createAnthropic({ apiKey, baseURL: versioned }).languageModel(name);
  return ready(id, model, [apiKey, ...urlSecrets(url)]);
}

async function resolveOpenAICompatible(id: string, name: string, options: ModelOptions): Promise<ResolvedModel> {
  const url = baseUrl(options, "openai-compatible", "OPENAI_COMPATIBLE_BASE_URL");
  if (url === undefined) {
    const message = `${id} needs the server's address: set OPENAI_COMPATIBLE_BASE_URL (for example http://127.0.0.1:11434/v1)`;
    throw new SluiceError("Session", "missing_base_url", message, {
      detail: { variables: ["OPENAI_COMPATIBLE_BASE_URL"] },
    });
  }
  const apiKey = setting(options.env, "OPENAI_COMPATIBLE_API_KEY");
  const load = (): Promise<typeof import("@ai-sdk/openai-compatible")> => import("@ai-sdk/openai-compatible");
  const { createOpenAICompatible } = await loadProvider("@ai-sdk/openai-compatible", load);
  const model = createOpenAICompatible({
    name: "openai-compatible",
    baseURL: url.pathname === "/" ? `${trimmed(url)}/v1` : trimmed(url),
    includeUsage: true,
    ...(apiKey === undefined ? {} : { apiKey }),
  }).languageModel(name);
  return ready(id, model, [...(apiKey === undefined ? [] : [apiKey]), ...urlSecrets(url)]);
}

async function resolveScript(id: string, file: string, options: ModelOptions): Promise<ResolvedModel> {
  if (file === "") throw invalidModel(`${JSON.stringify(id)} names no file; write scripted:<file>`);
  const [{ loadScript }, { scriptedModel }] = await Promise.all([import("./script.ts"), import("./scripted.ts")]);
  return scriptedModel(await loadScript(resolve(options.cwd, file)), { id, clock: options.clock });
}

async function resolveObject(model: ModelObject): Promise<ResolvedModel> {
  switch (model?.specificationVersion) {
    case "v4":
      return ready(`${model.provider}/${model.modelId}`, model, []);
    case "v3":
    case "v2": {
      // `ai` adapts older versions whenever it wraps a model, so an empty middleware is the adapter. For v2 it warns once on stderr.
      const { wrapLanguageModel } = await import("ai");
      return ready(`${model.provider}/${model.modelId}`, wrapLanguageModel({ model, middleware: [] }), []);
    }
    default:
      throw invalidModel(
        "a model is an id such as anthropic/<model>, or a model object of an AI SDK provider (v2, v3 or v4)",
      );
  }
}

function ready(id: string, model: LanguageModelV4, secrets: readonly string[]): ResolvedModel {
  return { id, secrets, at: () => model };
}

/** Loads a provider package; one that is not there is a Session error `provider_not_installed` that says what to install. */
export async function loadProvider<T>(name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (cause) {
    const code: unknown = cause instanceof Error && "code" in cause ? cause.code : undefined;
    // A package that is there but lacks one of its own dependencies is another matter: that error names the other package.
    if (code !== "ERR_MODULE_NOT_FOUND" || !(cause instanceof Error) || !cause.message.includes(`'${name}'`))
      throw cause;
    const message = `the package ${name} is not installed; run: npm install ${name}`;
    throw new SluiceError("Session", "provider_not_installed", message, { detail: { package: name }, cause });
  }
}

function setting(env: ModelOptions["env"], name: string): string | undefined {
  const value = env[name]?.trim();
  return value === "" ? undefined : value;
}

function baseUrl(options: ModelOptions, provider: string, variable: string): URL | undefined {
  const configured = options.baseUrls?.[provider];
  const value = configured ?? setting(options.env, variable);
  if (value === undefined) return undefined;
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url !== undefined && (url.protocol === "http:" || url.protocol === "https:")) return url;
  const from = configured === undefined ? variable : `the base URL configured for ${provider}`;
  throw new SluiceError("Validation", "invalid_base_url", `${from} is not an http(s) URL: ${JSON.stringify(value)}`);
}

/** Without query, fragment and closing slashes, which the packages would glue their paths to. */
function trimmed(url: URL): string {
  return `${url.protocol}//${userInfo(url)}${url.host}${url.pathname.replace(/\/+$/, "")}`;
}

function userInfo(url: URL): string {
  if (url.username === "") return "";
  return url.password === "" ? `${url.username}@` : `${url.username}:${url.password}@`;
}

function urlSecrets(url: URL): string[] {
  return url.password === "" ? [] : [decodeURIComponent(url.password), url.password];
}

function modelName(id: string, name: string): string {
  if (name.trim() === "")
    throw invalidModel(`${JSON.stringify(id)} names no model; write ${id.replace(/\/.*$/s, "")}/<model>`);
  return name;
}

function invalidModel(message: string): SluiceError {
  return new SluiceError("Validation", "invalid_model", message);
}

function missingKey(id: string, variable: string): SluiceError {
  return new SluiceError("Session", "missing_key", `${id} needs a key: set ${variable}`, {
    detail: { variables: [variable] },
  });
}

function unknownProvider(id: string, provider: string): SluiceError {
  const known = MODEL_PROVIDERS.map((info) => info.form).join(", ");
  const nearest = MODEL_PROVIDERS.find((info) => alike(provider.toLowerCase(), info.name));
  const hint = nearest === undefined ? "" : ` Did you mean ${nearest.form}?`;
  const message = `no provider for the model ${JSON.stringify(id)}.${hint} Known: ${known}. Any server that speaks OpenAI's chat API is openai-compatible.`;
  return new SluiceError("Validation", "unknown_provider", message, {
    detail: { model: id, known: MODEL_PROVIDERS.map((info) => info.name) },
  });
}

/** At most two letters apart, or the beginning of the name. */
function alike(word: string, name: string): boolean {
  if (word.length >= 4 && name.startsWith(word)) return true;
  let previous = Array.from({ length: name.length + 1 }, (_, column) => column);
  for (let row = 1; row <= word.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= name.length; column += 1) {
      const substitution = (previous[column - 1] ?? 0) + (word[row - 1] === name[column - 1] ? 0 : 1);
      current.push(Math.min(substitution, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1));
    }
    previous = current;
  }
  return (previous[name.length] ?? 0) <= 2;
}
