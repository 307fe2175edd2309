import { createSecretFilter, type SecretFilter } from "@sluice/core/runtime";
import { pairedKeys, secretForms } from "./encodings.ts";
import { isKeyName, isKeySetting, isKeyWord, looksLikeKey, looksRandom, mayBeKeyName } from "./key-names.ts";

/** Programs need these in any case. */
const NEVER_SECRET = new Set(["PATH", "PWD", "OLDPWD", "HOME"]);
const URL_PASSWORD = /:\/\/[^\s/:@]*:([^\s/@]+)@/g;
/** Some addresses have a key in place of a user. */
const URL_USER = /:\/\/([^\s/:@]+):?@/g;
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
    const inside = [...urlPasswords(value), ...pairedKeys(value)];
    if (!known && (NEVER_SECRET.has(name) || !(isKey(name, text) || inside.length > 0))) continue;
    secretNames.add(name);
    if (known ? text.length >= SHORTEST_SECRET : isKey(name, text) && looksLikeKey(text)) hidden.set(text, name);
    for (const key of inside) if (looksRandom(key)) hidden.set(key, name);
  }
  for (const value of values) if (!hidden.has(value)) hidden.set(value, "model key");
  for (const [value, name] of given) if (!hidden.has(value)) hidden.set(value, name);
  const filter = createSecretFilter(secretForms(hidden));
  const kept = declared.map((name) => env[name]?.trim() ?? "").filter((value) => value.length >= SHORTEST_SECRET);
  for (const [name, value] of set) {
    if (declared.includes(name) || kept.some((secret) => value.includes(secret))) continue;
    // Other variables may contain a secret, also an encoded one: `Bearer <key>`, `{"auth":"<base64>"}`.
    const hasSecret = !NEVER_SECRET.has(name) && filter.text(value) !== value;
    if (passed.includes(name) || !(secretNames.has(name) || hasSecret)) childEnv[name] = value;
  }
  return { filter, known: hidden, childEnv: Object.freeze(childEnv) };
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

function isKey(name: string, text: string): boolean {
  return isKeyName(name) || (mayBeKeyName(name) && looksLikeKey(text));
}

/** The keys among variables that settings or definitions give to processes, each with its name. */
export function keysInVariables(
  variables: Readonly<Record<string, string>>,
): readonly (readonly [value: string, name: string])[] {
  return Object.entries(variables).flatMap(([name, value]) => [
    ...(isKeySetting(name) || isKey(name, value.trim()) ? [[value.trim(), name] as const] : []),
    ...[...urlPasswords(value), ...pairedKeys(value)].map((key) => [key, name] as const),
  ]);
}

/** The passwords in the URLs of a value, and users that look like keys, as they stand there and decoded. */
export function urlPasswords(value: string): readonly string[] {
  const passwords = [...value.matchAll(URL_PASSWORD)].flatMap((found) => found[1] ?? []);
  const users = [...value.matchAll(URL_USER)].flatMap((found) => found[1] ?? []).filter(isKeyWord);
  return [...new Set([...passwords, ...users].flatMap((encoded) => [encoded, decoded(encoded)]))];
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
