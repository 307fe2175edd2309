// `@sluice/stages/environment-secrets`: a separate entry that loads little, for programs that only display runs.
import type { SecretFilter } from "@sluice/core/runtime";
import { MODEL_PROVIDERS } from "./models/registry.ts";
import { sessionSecrets } from "./secrets/detect.ts";

/**
 * Masks the secrets of the environment: provider keys, variables with names like keys, and the `named` ones. For input and output
 * outside of runs; a session also knows the keys of models and servers.
 */
export function environmentSecrets(
  env: Readonly<Record<string, string | undefined>>,
  named: readonly string[] = [],
): SecretFilter {
  return sessionSecrets(env, { named: [...named, ...providerKeys()], passed: [], values: [] }).filter;
}

/** The environment without those secrets, for a program that is not a tool of a run. `passed` are variables that it gets in any case. */
export function environmentWithoutSecrets(
  env: Readonly<Record<string, string | undefined>>,
  named: readonly string[],
  passed: readonly string[],
): Readonly<Record<string, string>> {
  return sessionSecrets(env, { named: [...named, ...providerKeys()], passed, values: [] }).childEnv;
}

function providerKeys(): readonly string[] {
  const variables = MODEL_PROVIDERS.flatMap((provider) => provider.variables.map(({ name }) => name));
  return variables.filter((name) => name.endsWith("KEY"));
}
