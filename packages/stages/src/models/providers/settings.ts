import type { LanguageModelV4, LanguageModelV4CallOptions, SharedV4ProviderOptions } from "@ai-sdk/provider";
import { type Clock, SluiceError } from "@sluice/core";
import type { ResolvedModel } from "../model.ts";
import { readHttpAddress } from "./http-url.ts";
import { withSilenceLimit } from "./silence-limit.ts";

export interface ModelOptions {
  /** Where keys and base URLs come from; `process.env` is never read here. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Base URLs from the configuration, by provider. They win over the environment. */
  readonly baseUrls?: Readonly<Record<string, string>>;
  /** Lets providers that charge less for a prompt they have seen keep it for a few minutes. True when omitted. */
  readonly promptCache?: boolean;
  /** Where a relative script path starts. */
  readonly cwd: string;
  /** Times the delays of a scripted model and the silence of others. */
  readonly clock: Clock;
}

/** A model that is the same at every turn, and not silent for ever. */
export function immutable(
  id: string,
  model: LanguageModelV4,
  secrets: readonly string[],
  { clock }: Pick<ModelOptions, "clock">,
): ResolvedModel {
  const limited = withSilenceLimit(model, clock);
  return { id, secrets, at: () => limited };
}

/** A variable of the environment; one that is blank is not set. */
export function setting(env: ModelOptions["env"], name: string): string | undefined {
  const value = env[name]?.trim();
  return value === "" ? undefined : value;
}

/** The key in a variable. Throws Session `missing_key` when it is not set. */
export function requireKey(id: string, options: ModelOptions, variable: string): string {
  const key = setting(options.env, variable);
  if (key !== undefined) return key;
  const detail = { variables: [variable] };
  throw new SluiceError("Session", "missing_key", `${id} needs a key: set ${variable}`, { detail });
}

/** The configured address, else the one in the environment. Throws Validation `invalid_base_url`. */
export function baseUrl(options: ModelOptions, provider: string, variable: string): URL | undefined {
  const value = setting(options.env, variable);
  return configuredUrl(options, provider) ?? (value === undefined ? undefined : parseUrl(value, variable));
}

/** The address the configuration gives a provider. Throws Validation `invalid_base_url`. */
export function configuredUrl(options: Pick<ModelOptions, "baseUrls">, provider: string): URL | undefined {
  const value = options.baseUrls?.[provider];
  return value === undefined ? undefined : parseUrl(value, `the base URL configured for ${provider}`);
}

/** An http(s) address; `from` says where it stands. Throws Validation `invalid_base_url`, never with the value. */
export function parseUrl(value: string, from: string): URL {
  const address = readHttpAddress(value);
  if (address.ok) return address.url;
  throw invalidUrl(
    address.fault === "not_http"
      ? `${from} is not an http(s) URL; write one such as https://host/v1`
      : `${from} holds a user name or a password, which cannot be sent this way; use the provider's key`,
  );
}

export function invalidUrl(message: string): SluiceError {
  return new SluiceError("Validation", "invalid_base_url", message);
}

export function invalidModel(message: string): SluiceError {
  return new SluiceError("Validation", "invalid_model", message);
}

/** The address as the packages take it; one without a path gets the usual one. */
export function versioned(url: URL, path: string): string {
  return url.pathname === "/" ? `${url.origin}${path}` : trimmedUrl(url);
}

/** Without query, fragment and closing slashes, which the packages would glue their paths to. */
export function trimmedUrl(url: URL): string {
  return `${url.origin}${url.pathname.replace(/\/+$/, "")}`;
}

/** The same model with defaults for its providers' options; what a call says itself wins, member by member. */
export function withDefaults(
  model: LanguageModelV4,
  providers: SharedV4ProviderOptions,
  maxOutputTokens?: number,
): LanguageModelV4 {
  const merged = (call: LanguageModelV4CallOptions): LanguageModelV4CallOptions => {
    const providerOptions: SharedV4ProviderOptions = { ...call.providerOptions };
    for (const [name, defaults] of Object.entries(providers))
      providerOptions[name] = { ...defaults, ...call.providerOptions?.[name] };
    const maximum = call.maxOutputTokens ?? maxOutputTokens;
    return { ...call, providerOptions, ...(maximum === undefined ? {} : { maxOutputTokens: maximum }) };
  };
  return {
    specificationVersion: "v4",
    provider: model.provider,
    modelId: model.modelId,
    supportedUrls: model.supportedUrls,
    doGenerate: (call) => model.doGenerate(merged(call)),
    doStream: (call) => model.doStream(merged(call)),
  };
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
