import type { LanguageModelV4, LanguageModelV4CallOptions, SharedV4ProviderOptions } from "@ai-sdk/provider";
import { type Clock, SluiceError } from "@sluice/core";
import { mediaTypesOf, withReadableFiles } from "../files.ts";
import { type ProviderAccess, type ResolvedModel, withCalls } from "../model.ts";
import { readHttpAddress } from "./http-url.ts";

export interface ModelOptions {
  /** For keys and base URLs; `process.env` is never read here. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Base URLs from the configuration, by provider; they take precedence over the environment. */
  readonly baseUrls?: Readonly<Record<string, string>>;
  /** Lets providers cache prompts for a few minutes at a lower price; default true. */
  readonly promptCache?: boolean;
  /** The base of relative script and cassette paths. */
  readonly cwd: string;
  readonly clock: Clock;
}

/** What is known of a model besides how to call it. */
export interface ModelKnown {
  readonly secrets: readonly string[];
  readonly access?: ProviderAccess;
}

/** A model that is the same for every turn; or, for a state that does not want the prompt cached, `uncached`. */
export function immutable(
  id: string,
  model: LanguageModelV4,
  { secrets, access, uncached = model }: ModelKnown & { readonly uncached?: LanguageModelV4 },
): ResolvedModel {
  const takes = mediaTypesOf(model);
  const usual = { plain: model, withFiles: withReadableFiles(model) };
  const other = uncached === model ? usual : { plain: uncached, withFiles: withReadableFiles(uncached) };
  return {
    id,
    secrets,
    ...(access === undefined ? {} : { access }),
    ...(takes === undefined ? {} : { takes }),
    // Looking for files in every message would make each turn slower than the last.
    at: ({ cache, files }) => (cache === false ? other : usual)[files === false ? "plain" : "withFiles"],
  };
}

/** A variable of the environment; a blank one counts as unset. */
export function setting(env: ModelOptions["env"], name: string): string | undefined {
  const value = env[name]?.trim();
  return value === "" ? undefined : value;
}

/** `provider` is the name in `baseUrls` of a config. */
export function accessOf(
  options: Pick<ModelOptions, "env" | "baseUrls">,
  provider: string,
  address: string,
  variables: { readonly address: string; readonly key?: string },
): ProviderAccess {
  const isConfigured = options.baseUrls?.[provider] !== undefined;
  return {
    provider,
    address,
    addressFrom: isConfigured ? `baseUrls.${provider} of the config` : variables.address,
    ...(variables.key === undefined ? {} : { keyVariable: variables.key }),
    hasKey: variables.key !== undefined && setting(options.env, variables.key) !== undefined,
  };
}

/** The key in a variable. Throws Session `missing_key`. */
export function requireKey(id: string, options: ModelOptions, variable: string): string {
  const key = setting(options.env, variable);
  if (key !== undefined) return key;
  throw missingKey(`${id} needs a key: set ${variable}`, [variable]);
}

/** Another variable that a provider needs. Throws Session `missing_key`. */
export function requireSetting(id: string, options: ModelOptions, variable: string): string {
  const value = setting(options.env, variable);
  if (value !== undefined) return value;
  throw missingKey(`${id} needs ${variable}: set it`, [variable]);
}

export function missingKey(message: string, variables: readonly string[]): SluiceError {
  return new SluiceError("Session", "missing_key", message, { detail: { variables: [...variables] } });
}

/** A variable that becomes a part of a host's name. Throws Validation `invalid_base_url`, because another value would name another host. */
export function hostPart(value: string, variable: string): string {
  if (/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i.test(value)) return value;
  throw invalidUrl(
    `${variable} is not a single name of letters, digits and hyphens; for another host, set the base URL`,
  );
}

/** The configured address, else the one in the environment. Throws Validation `invalid_base_url`. */
export function baseUrl(options: ModelOptions, provider: string, variable: string): URL | undefined {
  const value = setting(options.env, variable);
  return configuredUrl(options, provider) ?? (value === undefined ? undefined : parseUrl(value, variable));
}

/** The configured address of a provider. Throws Validation `invalid_base_url`. */
export function configuredUrl(options: Pick<ModelOptions, "baseUrls">, provider: string): URL | undefined {
  const value = options.baseUrls?.[provider];
  return value === undefined ? undefined : parseUrl(value, `the base URL configured for ${provider}`);
}

/** Parses an http(s) address. Throws Validation `invalid_base_url`, which names `from` but never the value. */
export function parseUrl(value: string, from: string): URL {
  const address = readHttpAddress(value);
  if (address.ok) return address.url;
  throw invalidUrl(
    address.fault === "not_http"
      ? `${from} is not an http(s) URL; use one such as https://host/v1`
      : `${from} contains a user name or a password, which cannot be sent this way; use the provider's key`,
  );
}

export function invalidUrl(message: string): SluiceError {
  return new SluiceError("Validation", "invalid_base_url", message);
}

export function invalidModel(message: string): SluiceError {
  return new SluiceError("Validation", "invalid_model", message);
}

/** The address as the packages expect it; `path` is added to an address without a path. */
export function versioned(url: URL, path: string): string {
  return url.pathname === "/" ? `${url.origin}${path}` : trimmedUrl(url);
}

/** Without query, fragment and trailing slashes, because the packages append their paths. */
export function trimmedUrl(url: URL): string {
  return `${url.origin}${url.pathname.replace(/\/+$/, "")}`;
}

/** Adds default provider options to a model; options of a call take precedence, member by member. */
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
  return withCalls(model, {
    doGenerate: (call) => model.doGenerate(merged(call)),
    doStream: (call) => model.doStream(merged(call)),
  });
}

/** Loads a provider package. Throws Session `provider_not_installed`, which names the package to install. */
export async function loadProvider<T>(name: string, load: () => Promise<T>): Promise<T> {
  return await loadPackage("provider_not_installed", name, load, `the package ${name} is not installed`);
}

/** Loads a package that may not be installed; then throws a Session error with this code, which says how to install it. */
export async function loadPackage<T>(code: string, name: string, load: () => Promise<T>, why: string): Promise<T> {
  try {
    return await load();
  } catch (cause) {
    // If an installed package lacks one of its dependencies, the error names that dependency.
    const isMissing =
      cause instanceof Error &&
      "code" in cause &&
      cause.code === "ERR_MODULE_NOT_FOUND" &&
      cause.message.includes(`'${name}'`);
    if (!isMissing) throw cause;
    throw new SluiceError("Session", code, `${why}; run: npm install ${name}`, { detail: { package: name }, cause });
  }
}
