import { createSecretFilter, type SecretFilter } from "@sluice/core/runtime";
import { looksRandom, secretForms } from "./encodings.ts";

/** Names of variables that hold keys. */
const KEY_VARIABLE =
  /(?:^|_)(?:API_?KEY|ACCESS_?KEY(?:_ID)?|SECRET(?:_KEY(?:_BASE)?)?|AUTH|PRIVATE_KEY|CREDENTIALS?|PASS|PAT|PWD)$|(?:PASSWORD|PASSWD|PASSPHRASE|TOKEN|BEARER_TOKEN_\w+)$/i;
/** Many of these are not secret (`SORT_KEY=name`), so the value must look like a secret too. */
const PERHAPS_KEY = /(?:^|_)KEY$/i;
/** The end of names of settings that hold keys. */
const KEY_WORD = /(?:key|token|secret|password|auth)$/i;
/** Programs need these in any case. */
const NEVER_SECRET = new Set(["PATH", "PWD", "OLDPWD", "HOME"]);
const URL_PASSWORD = /:\/\/[^\s/:@]*:([^\s/@]+)@/g;
/** Shorter values occur in ordinary text: such a variable is not passed to child processes, but its value is not redacted. */
export const SHORTEST_SECRET = 8;

export interface SessionSecrets {
  readonly filter: SecretFilter;
  /** The values that the filter masks, and their names. */
  readonly known: ReadonlyMap<string, string>;
  /** The environment of child processes. */
  readonly childEnv: Readonly<Record<string, string>>;
}

export interface SecretsOptions {
  /** Variables declared as secret. */
  readonly named: readonly string[];
  /** Variables that are passed to child processes although they look like secrets; their values are still redacted. */
  readonly passed: readonly string[];
  /** Keys of models. */
  readonly values: readonly string[];
  /** Keys in other settings, and their names. */
  readonly given?: ReadonlyMap<string, string>;
  /** Variables that a pipeline gives to some of its commands only. No other child process gets them, even if they are passed. */
  readonly declared?: readonly string[];
}

/** Splits an environment into the variables for child processes and the secrets. */
export function sessionSecrets(
  env: Readonly<Record<string, string | undefined>>,
  { named, passed, values, given = new Map(), declared = [] }: SecretsOptions,
): SessionSecrets {
  const hidden = new Map<string, string>();
  const childEnv: Record<string, string> = {};
  const set = Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const secretNames = new Set<string>();
  for (const [name, value] of set) {
    const text = value.trim();
    const known = [...named, ...declared].includes(name) || values.includes(value) || given.has(text);
    const passwords = urlPasswords(value);
    if (!known && (NEVER_SECRET.has(name) || !(isKey(name, text) || passwords.length > 0))) continue;
    secretNames.add(name);
    if (known ? text.length >= SHORTEST_SECRET : isKey(name, text) && looksRandom(text)) hidden.set(text, name);
    for (const password of passwords) if (looksRandom(password)) hidden.set(password, name);
  }
  for (const value of values) if (!hidden.has(value)) hidden.set(value, "model key");
  for (const [value, name] of given) if (!hidden.has(value)) hidden.set(value, name);
  // Other variables may contain a secret: `Bearer <key>`.
  const secrets = [...hidden.keys()].filter((secret) => secret.length >= SHORTEST_SECRET);
  const kept = declared.map((name) => env[name]?.trim() ?? "").filter((value) => value.length >= SHORTEST_SECRET);
  for (const [name, value] of set) {
    if (declared.includes(name) || kept.some((secret) => value.includes(secret))) continue;
    const hasSecret = !NEVER_SECRET.has(name) && secrets.some((secret) => value.includes(secret));
    if (passed.includes(name) || !(secretNames.has(name) || hasSecret)) childEnv[name] = value;
  }
  return { filter: createSecretFilter(secretForms(hidden)), known: hidden, childEnv: Object.freeze(childEnv) };
}

/** Caches the secrets of a session until the environment or the keys of models and servers change. */
export function rememberedSecrets(
  env: Readonly<Record<string, string | undefined>>,
  always: Pick<SecretsOptions, "named" | "passed">,
): (now: Required<Pick<SecretsOptions, "values" | "given" | "declared">>) => SessionSecrets {
  let cached: { readonly key: string; readonly secrets: SessionSecrets } | undefined;
  return ({ values, given, declared }) => {
    const key = JSON.stringify([env, values, [...given], declared]);
    if (cached?.key !== key) cached = { key, secrets: sessionSecrets(env, { ...always, values, given, declared }) };
    return cached.secrets;
  };
}

/** Whether the name of a variable says that it holds a key. */
function isKeyName(name: string): boolean {
  return KEY_VARIABLE.test(name);
}

function isKey(name: string, text: string): boolean {
  return isKeyName(name) || (PERHAPS_KEY.test(name) && looksRandom(text));
}

/** The keys among variables that settings or definitions give to processes, each with its name. */
export function keysInVariables(
  variables: Readonly<Record<string, string>>,
): readonly (readonly [value: string, name: string])[] {
  return Object.entries(variables).flatMap(([name, value]) => [
    ...(isKeyName(name) || KEY_WORD.test(name) ? [[value.trim(), name] as const] : []),
    ...urlPasswords(value).map((password) => [password, name] as const),
  ]);
}

/** The passwords in the URLs of a value, as they stand there and decoded. */
export function urlPasswords(value: string): readonly string[] {
  const encoded = [...value.matchAll(URL_PASSWORD)].flatMap((found) => found[1] ?? []);
  return [...new Set(encoded.flatMap((password) => [password, decoded(password)]))];
}

/** The text itself if it is not encoded. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (thrown) {
    if (thrown instanceof URIError) return text;
    throw thrown;
  }
}
