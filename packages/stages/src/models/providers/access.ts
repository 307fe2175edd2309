import { type ModelOptions, setting } from "./settings.ts";

/** How a provider is reached: what a person can change when a call fails. Holds no key. */
export interface ProviderAccess {
  readonly provider: string;
  /** Where requests go, without a query. */
  readonly address: string;
  /** What sets the address: a variable, or a field of the config. */
  readonly addressFrom: string;
  /** The variable that is read for the key; absent if the provider reads none. */
  readonly keyVariable?: string;
  readonly hasKey: boolean;
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
