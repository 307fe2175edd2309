import { field, type RunHost, type SecretFilter } from "@sluice/core";
import { environmentSecrets } from "@sluice/stages/environment-secrets";
import type { Environment } from "../project/environment.ts";
import { rootOf, startedWith } from "./lookup.ts";

/**
 * What to take out of words to a run before they are sent: the store keeps them as they come, and only what the run makes of
 * them passes its own session's filter.
 */
export async function secretsToward(host: RunHost, runId: string, env: Environment): Promise<SecretFilter> {
  const named = field(await startedWith(host, rootOf(runId)), "secrets");
  return environmentSecrets(env, Array.isArray(named) ? named.filter((name) => typeof name === "string") : []);
}
