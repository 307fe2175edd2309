import { createSecretFilter, type SecretFilter } from "@sluice/core";

/** Variables that hold keys by what they are called, whoever set them. */
const KEY_VARIABLE =
  /(?:^|_)(?:API_?KEY|ACCESS_?KEY(?:_ID)?|SECRET|SECRET_KEY|AUTH_?TOKEN|TOKEN|PASSWORD|PASSWD|PRIVATE_KEY|CREDENTIALS?)$/i;
/** Shorter values would be found in ordinary text; such a variable is kept from children, but not looked for. */
const SHORTEST_SECRET = 8;

export interface SessionSecrets {
  readonly filter: SecretFilter;
  /** The environment of child processes. */
  readonly childEnv: Readonly<Record<string, string>>;
}

export interface SecretsOptions {
  /** Variables that somebody said are secret. */
  readonly named: readonly string[];
  /** Variables that children may have although they look like secrets; their values are still redacted. */
  readonly passed: readonly string[];
  /** Values that models are called with. */
  readonly values: readonly string[];
}

/** Splits an environment into what children may have and what must never be shown. */
export function sessionSecrets(
  env: Readonly<Record<string, string | undefined>>,
  { named, passed, values }: SecretsOptions,
): SessionSecrets {
  const hidden = new Map<string, string>();
  const childEnv: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (value === undefined) continue;
    const known = named.includes(name) || values.includes(value);
    const secret = known || KEY_VARIABLE.test(name);
    if (!secret || passed.includes(name)) childEnv[name] = value;
    const text = value.trim();
    if (known ? text.length >= SHORTEST_SECRET : secret && looksRandom(text)) hidden.set(text, name);
  }
  for (const value of values) if (!hidden.has(value)) hidden.set(value, "model key");
  return { filter: createSecretFilter(hidden), childEnv };
}

/** A password such as `postgres` is a word of many files: replacing it there would break them and protect nothing. */
function looksRandom(text: string): boolean {
  return text.length >= 16 && /\d/.test(text) && /[A-Za-z]/.test(text) && !/\s/.test(text);
}
