import { SluiceError } from "../base/errors.ts";
import { deepFreeze, isJsonObject, type Json, type JsonObject } from "../base/json.ts";

/** Replaces a secret. Tools refuse to write it into files. */
export const REDACTION_MARKER = "[redacted:";

const SYNTAX = /[\\^$.*+?()[\]{}|/-]/g;
/** Matches nothing. */
const NEVER = "(?!)";
/** Shorter values would match ordinary text. */
const SHORTEST = 6;

export interface SecretFilter {
  text(text: string): string;
  /** Returns the value itself if it holds no secret. */
  json(value: Json): Json;
  /** How many characters at the end of a text may begin a secret; a stream holds them back. */
  begun(text: string): number;
}

/** Replaces known secret values in texts, longest first; `secrets` maps each value to its name. */
export function createSecretFilter(secrets: ReadonlyMap<string, string>): SecretFilter {
  const known = [...secrets].filter(([value]) => value.length >= SHORTEST).sort((a, b) => b[0].length - a[0].length);
  // One combined test, since almost no text holds a secret.
  const any = new RegExp(known.map(([value]) => value.replaceAll(SYNTAX, String.raw`\$&`)).join("|") || NEVER);
  const shortest = known.at(-1)?.[0].length ?? 0;
  const clean = (text: string): string => {
    if (text.length < shortest || !any.test(text)) return text;
    let result = text;
    // A function, since `$&` in a replacement text would insert the value.
    for (const [value, name] of known) result = result.replaceAll(value, () => marked(name));
    return result;
  };
  // A secret of digits may appear as a number.
  const numbers = known.some(([value]) => /^[-+.\deE]+$/.test(value));
  // A number keeps about sixteen digits, so its text may differ from a longer secret.
  const long = new Map(known.flatMap(([value, name]) => (/^[1-9]\d{15,}$/.test(value) ? [[Number(value), name]] : [])));
  const cleanNumber = (value: number): Json => {
    const name = long.get(Math.abs(value));
    if (name !== undefined) return marked(name);
    const text = String(value);
    const masked = clean(text);
    return masked === text ? value : masked;
  };
  const cleaner: Cleaner = { text: clean, number: (value) => (numbers ? cleanNumber(value) : value) };
  const byStart = Map.groupBy(
    known.map(([value]) => value),
    (value) => value.charAt(0),
  );
  const longest = known[0]?.[0].length ?? 0;
  // Frozen, since kinds and tools get it, and what they return is masked by it.
  return Object.freeze<SecretFilter>({
    text: clean,
    json: (value) => (known.length > 0 && holdsAny(value, cleaner) ? cleanJson(value, cleaner) : value),
    begun: (text) => {
      for (let at = Math.max(0, text.length - longest + 1); at < text.length; at += 1) {
        const end = text.slice(at);
        const begins = (value: string): boolean => value.length > end.length && value.startsWith(end);
        if (byStart.get(end.charAt(0))?.some(begins) === true) return end.length;
      }
      return 0;
    },
  });
}

interface Cleaner {
  text(text: string): string;
  /** Returns the number itself if it holds no secret. */
  number(value: number): Json;
}

function marked(name: string): string {
  return `${REDACTION_MARKER}${name}]`;
}

/** Avoids copying values that hold no secret. */
function holdsAny(value: Json, cleaner: Cleaner): boolean {
  if (typeof value === "string") return cleaner.text(value) !== value;
  if (typeof value === "number") return cleaner.number(value) !== value;
  if (typeof value !== "object" || value === null) return false;
  if (!isJsonObject(value)) return value.some((member) => holdsAny(member, cleaner));
  for (const key in value) {
    const member = value[key];
    if (cleaner.text(key) !== key || (member !== undefined && holdsAny(member, cleaner))) return true;
  }
  return false;
}

function cleanJson(value: Json, cleaner: Cleaner): Json {
  if (typeof value === "string") return cleaner.text(value);
  if (typeof value === "number") return cleaner.number(value);
  if (typeof value !== "object" || value === null) return value;
  if (!isJsonObject(value)) return value.map((member) => cleanJson(member, cleaner));
  const clean = ([key, member]: readonly [string, Json]) => [cleaner.text(key), cleanJson(member, cleaner)] as const;
  return Object.fromEntries(Object.entries(value).map(clean));
}

/** A copy of a value with known secrets replaced, for what user code returns or throws. */
export function maskSecrets<T extends Json>(value: T, secrets: SecretFilter): T {
  const clean = secrets.json(value);
  if (clean === value) return value;
  const own: T = JSON.parse(JSON.stringify(clean));
  return own;
}

/** Endings of names of secrets; the parts of a word may be joined by `-`, `_` or nothing. */
export const SECRET_WORDS: readonly string[] = [
  ...["password", "passwd", "passphrase", "secret", "token", "api-key", "access-key", "private-key"],
  ...["authorization", "cookie", "credential", "credentials"],
];

const SECRET_NAME = new RegExp(
  `^(?:.*[-_.])?(?:${SECRET_WORDS.map((word) => word.replace("-", "[-_]?")).join("|")}|clientsecret)$`,
  "i",
);

/** A word boundary in camel case, also behind an acronym: `dbPassword`, `DBPassword`. */
const NEXT_WORD = /(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/g;

/** Whether the name of a key, variable, header or parameter suggests a secret. */
function namesSecret(name: string): boolean {
  return SECRET_NAME.test(name) || SECRET_NAME.test(name.replaceAll(NEXT_WORD, "-"));
}

/** Well-known forms of secrets, which are recognized without a name. */
export const SECRET_FORMS: readonly (readonly [name: string, pattern: RegExp])[] = [
  [
    "private-key",
    /-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|$)/g,
  ],
  ["api-key", /\bsk-[A-Za-z0-9_-]{16,}/g],
  ["github-token", /\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})/g],
  ["google-key", /\bAIza[A-Za-z0-9_-]{30,}/g],
  ["aws-key", /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g],
  ["slack-token", /\bxox[abeoprs]-[A-Za-z0-9-]{10,}/g],
  ["npm-token", /\bnpm_[A-Za-z0-9]{30,}/g],
  // Anchored to the start of such a run, since trying every position would take quadratic time.
  ["jwt", /(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}/g],
  ["bearer", /\b[Bb]earer\s+[A-Za-z0-9._~+/-]{16,}=*/g],
  ["url-password", /(?<=:\/\/[^\s:/@]{0,64}:)[^\s/@]{3,}(?=@)/g],
];

/** The end of a name that may name a secret; `namesSecret` decides. */
const END = "(?:password|passwd|passphrase|secret|token|key|authorization|cookie|credentials?)";
/** Notations for a named value in a text. Each captures the text before the value, the name and the value. */
const NAMED: readonly (readonly [way: string, source: string])[] = [
  // "name": "value", also in JSON inside a JSON string.
  [
    "json",
    String.raw`(?<before>(?<quote>\\{0,8}["'])(?<name>[\w.-]{0,48}${END})\k<quote>\s{0,8}:\s{0,8}\k<quote>)(?<value>(?:(?!\k<quote>)[^\r\n])+)`,
  ],
  // Name: value, as in headers. Only these two one-word names, since code and prose use the same notation.
  [
    "header",
    String.raw`(?<before>(?<![\w-])(?<name>authorization|cookie|[a-z][a-z0-9-]{0,40}-${END}):[ \t]{0,8})(?<value>[^\s"'${"`"}\\][^\r\n"'${"`"}\\]{7,})`,
  ],
  // ?name=value and &name=value
  ["query", String.raw`(?<before>[?&;](?<name>[\w.-]{0,48}${END})=)(?<value>[^\s&;#"'<>${"`"}\\]{4,})`],
  // --name=value and --name value
  [
    "flag",
    String.raw`(?<before>(?<![\w-])--(?<name>[a-z0-9-]{0,48}${END})(?:=|[ \t]{1,4})["']?)(?<value>[^\s"'${"`"}$<-][^\s"'${"`"}\\]{3,})`,
  ],
];
/** NAME=value and NAME: value, as in .env files. A reference to another variable is not a secret. */
const VARIABLE =
  /(?<before>(?<![\w-])(?<name>[A-Z][A-Z0-9_]{0,63})\s?[=:]\s?["']?)(?<value>(?!process\.|import\.|os\.)[^\s"'`$<(\\](?:(?<=["'].)[^\r\n"'\\]{5,}|[^\s"'`\\]{5,}))/g;
/** Every notation with its pattern. */
export const SECRET_PATTERNS: readonly (readonly [way: string, pattern: RegExp])[] = [
  ...NAMED.map(([way, source]) => [way, new RegExp(source, "gi")] as const),
  ["variable", VARIABLE],
];

/** Whether any pattern or name could match, since most texts hold no secret. One test of both in any case takes twice as long. */
function mayHoldSecret(text: string): boolean {
  return EXACT_HINT.test(text) || ANY_CASE_HINT.test(text);
}

const EXACT_HINT = /PRIVATE KEY|sk-|gh[pousr]_|github_pat_|AIza|AKIA|ASIA|xox|npm_|eyJ|:\/\//;
const ANY_CASE_HINT =
  /bearer|passw|passphrase|(?:secret|token)(?![a-z])|api[-_]?key|access[-_]?key|private[-_]?key|authorization|cookie|credential/i;

/** Replaces what looks like a secret in a text that is shown or recorded outside step values. */
export function redactText(text: string): string {
  if (!mayHoldSecret(text)) return text;
  let redacted = text;
  for (const [name, pattern] of SECRET_FORMS) redacted = redacted.replace(pattern, `${REDACTION_MARKER}${name}]`);
  for (const [, pattern] of SECRET_PATTERNS) redacted = redacted.replace(pattern, withoutValue);
  return redacted;
}

/** The arguments of a `replace` callback; named groups come last. */
function withoutValue(found: string, ...rest: readonly unknown[]): string {
  const groups = rest.at(-1);
  if (!isGroups(groups)) return found;
  const { before = "", name = "", value = "" } = groups;
  if (!namesSecret(name) || value.startsWith(REDACTION_MARKER)) return found;
  return `${before}${REDACTION_MARKER}${name}]`;
}

function isGroups(value: unknown): value is Readonly<Record<string, string | undefined>> {
  return typeof value === "object" && value !== null;
}

/** The redacted text of data that many events share. Kept beside the data: what an object carries, a program could copy to another. */
const SHARED_TEXTS = new WeakMap<JsonObject, string>();

/** Data that many events share, whose redacted text is made once. A copy of it is ordinary data. */
export function sharedData(data: JsonObject): JsonObject {
  const shared = deepFreeze({ ...data });
  SHARED_TEXTS.set(shared, redactedJson(shared));
  return shared;
}

/** The JSON text of an event's data, redacted. Throws Validation `not_json` for data whose text is no object. */
export function redactedJson(data: JsonObject): string {
  const shared = SHARED_TEXTS.get(data);
  if (shared !== undefined) return shared;
  const text: string | undefined = JSON.stringify(data);
  // Whatever a toJSON made of it, no reader of the journal could read the record.
  if (text?.startsWith("{") !== true)
    throw new SluiceError(
      "Validation",
      "not_json",
      "the data of an event is no object; give it an object of JSON values",
    );
  if (!mayHoldSecret(text)) return text;
  // The text and not the data, which a toJSON could change from one reading to the next.
  const own: JsonObject = JSON.parse(text);
  return JSON.stringify(redactObject(own));
}

/** How many characters of a key's name the marker keeps. */
const LONGEST_NAME = 40;

/** Replaces what looks like a secret in a value, by its key's name or by its form. Returns the value itself if it holds none. */
export function redactJson(value: Json): Json {
  const text = JSON.stringify(value);
  if (!mayHoldSecret(text)) return value;
  const own: Json = JSON.parse(text);
  return redactAny(own);
}

function redactAny(value: Json): Json {
  if (typeof value === "string") return redactText(value);
  if (typeof value !== "object" || value === null) return value;
  return isJsonObject(value) ? redactObject(value) : value.map(redactAny);
}

function redactObject(value: JsonObject): JsonObject {
  const entries: [string, Json][] = [];
  for (const [key, member] of Object.entries(value)) {
    const hidden =
      namesSecret(key) && (typeof member === "string" ? member !== "" : typeof member === "object" && member !== null);
    entries.push([redactText(key), hidden ? `${REDACTION_MARKER}${key.slice(0, LONGEST_NAME)}]` : redactAny(member)]);
  }
  return Object.fromEntries(entries);
}
