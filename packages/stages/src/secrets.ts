import { createSecretFilter, type SecretFilter } from "@sluice/core";

/** Variables that hold keys by what they are called, whoever set them. */
const KEY_VARIABLE = /(?:^|_)(?:API_?KEY|ACCESS_?KEY|SECRET|SECRET_KEY|TOKEN|PASSWORD|PASSWD|PRIVATE_KEY|CREDENTIALS?)$/i;
/** What a short value would match in ordinary text; such a variable is kept from children, but not looked for. */
const SHORTEST_SECRET = 8;

export interface SessionSecrets {
  readonly filter: SecretFilter;
  /** The environment of child processes. */
  readonly childEnv: Readonly<Record<string, string>>;
}

/** Splits an environment into what children may have and what must never be shown. */
export function sessionSecrets(
  env: Readonly<Record<string, string | undefined>>,
  named: readonly string[],
  values: readonly string[],
): SessionSecrets {
  const hidden = new Map<string, string>();
  const childEnv: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (value === undefined) continue;
    if (!named.includes(name) && !KEY_VARIABLE.test(name) && !values.includes(value)) {
      childEnv[name] = value;
      continue;
    }
    const secret = value.trim();
    if (secret.length >= SHORTEST_SECRET) hidden.set(secret, name);
  }
  for (const value of values) if (!hidden.has(value)) hidden.set(value, "model key");
  return { filter: createSecretFilter(hidden), childEnv };
}
