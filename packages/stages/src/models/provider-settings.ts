import type { LanguageModelV4 } from "@ai-sdk/provider";
import { type Clock, SluiceError } from "@sluice/core";
import type { ResolvedModel } from "./model.ts";

export interface ModelOptions {
  /** Where keys and base URLs come from; `process.env` is never read here. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Base URLs from the configuration, by provider. They win over the environment. */
  readonly baseUrls?: Readonly<Record<string, string>>;
  /** Lets providers that charge less for a prompt they have seen keep it for a few minutes. True when omitted. */
  readonly promptCache?: boolean;
  /** Where a relative script path starts. */
  readonly cwd: string;
  /** Times the delays of a scripted model. */
  readonly clock: Clock;
}

/** A model that is the same at every turn. */
export function steady(id: string, model: LanguageModelV4, secrets: readonly string[]): ResolvedModel {
  return { id, secrets, at: () => model };
}

/** A variable of the environment; one that is blank is not set. */
export function setting(env: ModelOptions["env"], name: string): string | undefined {
  const value = env[name]?.trim();
  return value === "" ? undefined : value;
}

/** The configured address, else the one in the environment. Throws Validation `invalid_base_url`. */
export function baseUrl(options: ModelOptions, provider: string, variable: string): URL | undefined {
  const configured = options.baseUrls?.[provider];
  const value = configured ?? setting(options.env, variable);
  if (value === undefined) return undefined;
  const from = configured === undefined ? variable : `the base URL configured for ${provider}`;
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw invalidUrl(`${from} is not an http(s) URL; write one such as https://host/v1`);
  }
  // The platform's fetch refuses such addresses, and the message must not repeat the password.
  if (url.username !== "" || url.password !== "") {
    throw invalidUrl(`${from} holds a user name or a password, which cannot be sent this way; use the provider's key`);
  }
  return url;
}

function invalidUrl(message: string): SluiceError {
  return new SluiceError("Validation", "invalid_base_url", message);
}

/** Without query, fragment and closing slashes, which the packages would glue their paths to. */
export function trimmedUrl(url: URL): string {
  return `${url.origin}${url.pathname.replace(/\/+$/, "")}`;
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
