import { isJsonObject, type Json, type JsonObject } from "../base/json.ts";

/** What stands where a secret stood. Tools refuse to write it back into files. */
export const REDACTION_MARKER = "[redacted:";

const KEY_NAME =
  /^(?:.*[-_.])?(?:password|passwd|passphrase|secret|token|api[-_]?key|access[-_]?key|private[-_]?key|clientsecret|authorization|cookie|credentials?)$/i;

/** Where camel case begins another word. */
const NEXT_WORD = /(?<=[a-z0-9])(?=[A-Z])/g;

function namesSecret(key: string): boolean {
  return KEY_NAME.test(key) || KEY_NAME.test(key.replaceAll(NEXT_WORD, "-"));
}

const PATTERNS: readonly (readonly [name: string, pattern: RegExp])[] = [
  ["private-key", /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g],
  ["api-key", /\bsk-[A-Za-z0-9_-]{16,}/g],
  ["github-token", /\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})/g],
  ["google-key", /\bAIza[A-Za-z0-9_-]{30,}/g],
  ["aws-key", /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g],
  ["slack-token", /\bxox[abeoprs]-[A-Za-z0-9-]{10,}/g],
  ["npm-token", /\bnpm_[A-Za-z0-9]{30,}/g],
  // Only at the start of a run of such characters: elsewhere each of many starts would be tried to the end of the text.
  ["jwt", /(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}/g],
  ["bearer", /\b[Bb]earer\s+[A-Za-z0-9._~+/-]{16,}=*/g],
  ["url-password", /(?<=:\/\/[^\s:/@]{1,64}:)[^\s/@]{3,}(?=@)/g],
];
/** One test that is true whenever any pattern or key name could match: most events end here. */
const HINT =
  /PRIVATE KEY|sk-|gh[pousr]_|github_pat_|AIza|AKIA|ASIA|xox|npm_|eyJ|[Bb]earer|:\/\/|passw|passphrase|secret|token"|api[-_]?key|access[-_]?key|private[-_]?key|authorization|cookie|credential/i;

/** Replaces what looks like a secret in a text that is shown or kept outside step values. */
export function redactText(text: string): string {
  if (!HINT.test(text)) return text;
  let redacted = text;
  for (const [name, pattern] of PATTERNS) redacted = redacted.replace(pattern, `${REDACTION_MARKER}${name}]`);
  return redacted;
}

export function redactJson(value: Json): Json {
  if (typeof value === "string") return redactText(value);
  if (typeof value !== "object" || value === null) return value;
  return isJsonObject(value) ? redactObject(value) : value.map(redactJson);
}

function redactObject(value: JsonObject): JsonObject {
  const entries: [string, Json][] = [];
  for (const [key, member] of Object.entries(value)) {
    const hidden =
      namesSecret(key) && (typeof member === "string" ? member !== "" : typeof member === "object" && member !== null);
    entries.push([redactText(key), hidden ? `${REDACTION_MARKER}${key.slice(0, 40)}]` : redactJson(member)]);
  }
  return Object.fromEntries(entries);
}

/** The JSON text of an event's data with what looks like a secret replaced; most texts hold no hint of one and are done. */
export function redactedJson(data: JsonObject): string {
  const text = JSON.stringify(data);
  return HINT.test(text) ? JSON.stringify(redactObject(data)) : text;
}

/** Replaces known secret values, longest first, wherever they occur in a text. */
export function createSecretFilter(secrets: ReadonlyMap<string, string>): SecretFilter {
  const known = [...secrets].filter(([value]) => value.length >= 6).sort((a, b) => b[0].length - a[0].length);
  const clean = (text: string): string => {
    let result = text;
    for (const [value, name] of known)
      if (result.includes(value)) result = result.replaceAll(value, `${REDACTION_MARKER}${name}]`);
    return result;
  };
  return {
    longest: known[0]?.[0].length ?? 0,
    text: clean,
    json: (value) => (known.length > 0 && holdsAny(value, clean) ? cleanJson(value, clean) : value),
  };
}

export interface SecretFilter {
  /** Length of the longest secret: how much streamed text has to be held back. */
  readonly longest: number;
  text(text: string): string;
  /** The value itself when it holds none. */
  json(value: Json): Json;
}

/** Nearly nothing holds a secret, and what holds none need not be copied. */
function holdsAny(value: Json, clean: (text: string) => string): boolean {
  if (typeof value === "string") return clean(value) !== value;
  if (typeof value !== "object" || value === null) return false;
  if (!isJsonObject(value)) return value.some((member) => holdsAny(member, clean));
  for (const key in value) {
    const member = value[key];
    if (clean(key) !== key || (member !== undefined && holdsAny(member, clean))) return true;
  }
  return false;
}

function cleanJson(value: Json, clean: (text: string) => string): Json {
  if (typeof value === "string") return clean(value);
  if (typeof value !== "object" || value === null) return value;
  if (!isJsonObject(value)) return value.map((member) => cleanJson(member, clean));
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [clean(key), cleanJson(member, clean)]));
}
