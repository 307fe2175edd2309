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
  const keys = MODEL_PROVIDERS.flatMap(({ variables }) => variables.map(({ name }) => name)).filter((name) =>
    name.endsWith("KEY"),
  );
  return sessionSecrets(env, { named: [...named, ...keys], passed: [], values: [] }).filter;
}
