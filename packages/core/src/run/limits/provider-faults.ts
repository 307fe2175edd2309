import type { ProviderFaultOptions, ProviderRetry } from "../../definition/state-rules.ts";

/** What a state does about faults of a provider. */
export interface ProviderFaultPolicy {
  readonly onProviderFault: "suspend" | "fail";
  readonly retry: Required<ProviderRetry>;
}

const RETRY: Required<ProviderRetry> = {
  maxAttempts: Number.POSITIVE_INFINITY,
  maxElapsedMs: 300_000,
  initialMs: 1_000,
  factor: 2,
};

/** The settings of `inner`, and those of `outer` where it has none. */
export function mergedFaults(
  { retry, onProviderFault }: ProviderFaultOptions,
  outer: ProviderFaultOptions,
): ProviderFaultOptions {
  if (retry === undefined && onProviderFault === undefined) return outer;
  return {
    ...outer,
    ...(onProviderFault === undefined ? {} : { onProviderFault }),
    retry: { ...outer.retry, ...defined(retry) },
  };
}

export function providerFaultPolicy(state: ProviderFaultOptions, outer: ProviderFaultOptions): ProviderFaultPolicy {
  const { onProviderFault = "fail", retry } = mergedFaults(state, outer);
  return { onProviderFault, retry: { ...RETRY, ...defined(retry) } };
}

/** An option that is given as undefined is not given. */
function defined(retry: ProviderRetry = {}): ProviderRetry {
  return Object.fromEntries(Object.entries(retry).filter(([, value]) => value !== undefined));
}
