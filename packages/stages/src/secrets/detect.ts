import { createSecretFilter, type SecretFilter } from "@sluice/core";
import { secretForms } from "./encodings.ts";

/** Variables that hold keys by what they are called, whoever set them. */
const KEY_VARIABLE =
  /(?:^|_)(?:API_?KEY|ACCESS_?KEY(?:_ID)?|SECRET(?:_KEY(?:_BASE)?)?|AUTH|PRIVATE_KEY|CREDENTIALS?|PASS|PAT|PWD)$|(?:PASSWORD|PASSWD|PASSPHRASE|TOKEN)$/i;
/** Many are not secret (`SORT_KEY=name`), so the value has to look like one. */
const PERHAPS_KEY = /(?:^|_)KEY$/i;
/** Programs do not work without these, whatever they hold. */
const NEVER_SECRET = new Set(["PATH", "PWD", "OLDPWD", "HOME"]);
const URL_PASSWORD = /:\/\/[^\s/:@]*:([^\s/@]+)@/g;
/** Shorter values would be found in ordinary text; such a variable is kept from children, but not looked for. */
export const SHORTEST_SECRET = 8;

export interface SessionSecrets {
  readonly filter: SecretFilter;
  /** The values the filter looks for, and what each is called. */
  readonly known: ReadonlyMap<string, string>;
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
  /** Keys in other settings, and what each is called. */
  readonly given?: ReadonlyMap<string, string>;
}

/** Splits an environment into what children may have and what must never be shown. */
export function sessionSecrets(
  env: Readonly<Record<string, string | undefined>>,
  { named, passed, values, given = new Map() }: SecretsOptions,
): SessionSecrets {
  const hidden = new Map<string, string>();
  const childEnv: Record<string, string> = {};
  const set = Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const secretNames = new Set<string>();
  for (const [name, value] of set) {
    const text = value.trim();
    const known = named.includes(name) || values.includes(value) || given.has(text);
    const passwords = urlPasswords(value);
    if (!known && (NEVER_SECRET.has(name) || !(isKey(name, text) || passwords.length > 0))) continue;
    secretNames.add(name);
    if (known ? text.length >= SHORTEST_SECRET : isKey(name, text) && looksRandom(text)) hidden.set(text, name);
    for (const password of passwords) if (looksRandom(password)) hidden.set(password, name);
  }
  for (const value of values) if (!hidden.has(value)) hidden.set(value, "model key");
  for (const [value, name] of given) if (!hidden.has(value)) hidden.set(value, name);
  // A secret among other text is one still: `Bearer <key>`.
  const secrets = [...hidden.keys()].filter((secret) => secret.length >= SHORTEST_SECRET);
  for (const [name, value] of set) {
    const holdsOne = !NEVER_SECRET.has(name) && secrets.some((secret) => value.includes(secret));
    if (passed.includes(name) || !(secretNames.has(name) || holdsOne)) childEnv[name] = value;
  }
  return { filter: createSecretFilter(secretForms(hidden)), known: hidden, childEnv: Object.freeze(childEnv) };
}

/** The secrets of a session: split anew only when the environment changed, or what models and servers are called with. */
export function rememberedSecrets(
  env: Readonly<Record<string, string | undefined>>,
  always: Pick<SecretsOptions, "named" | "passed">,
): (now: Required<Pick<SecretsOptions, "values" | "given">>) => SessionSecrets {
  let known: { readonly of: string; readonly secrets: SessionSecrets } | undefined;
  return ({ values, given }) => {
    const of = JSON.stringify([env, values, [...given]]);
    if (known?.of !== of) known = { of, secrets: sessionSecrets(env, { ...always, values, given }) };
    return known.secrets;
  };
}

/** Whether a variable holds a key by what it is called. */
export function isKeyName(name: string): boolean {
  return KEY_VARIABLE.test(name);
}

function isKey(name: string, text: string): boolean {
  return isKeyName(name) || (PERHAPS_KEY.test(name) && looksRandom(text));
}

/** Passwords as they stand in the URLs of a value. */
export function urlPasswords(value: string): readonly string[] {
  return [...value.matchAll(URL_PASSWORD)].flatMap((found) => found[1] ?? []);
}

/** A password such as `postgres` is a word of many files: replacing it there would break them and protect nothing. */
export function looksRandom(text: string): boolean {
  return text.length >= 16 && /\d/.test(text) && /[A-Za-z]/.test(text) && !/\s/.test(text);
}

/** Fewer characters of a secret tell nothing, and stand at the end of many texts. */
const SHORTEST_BEGINNING = 4;

/** How many characters at the end of a text that was cut are the beginning of a secret. */
export function begunSecret(text: string, secret: string): number {
  for (let length = Math.min(secret.length - 1, text.length); length >= SHORTEST_BEGINNING; length -= 1)
    if (text.endsWith(secret.slice(0, length))) return length;
  return 0;
}
