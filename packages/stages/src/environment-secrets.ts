// An entry of its own: whoever only looks at runs needs these, and nothing else of what loads with stages.
import type { SecretFilter } from "@sluice/core";
import { MODEL_PROVIDERS } from "./models/registry.ts";
import { sessionSecrets } from "./secrets/detect.ts";

/**
 * What a process knows to be secret by its environment alone: keys of providers, variables that are called like keys, and those
 * named. For what people type and programs print outside of runs; a run's own session knows more.
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
