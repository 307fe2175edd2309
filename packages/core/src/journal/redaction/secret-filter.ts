import { isJsonObject, type Json } from "../../base/json.ts";

/** What stands where a secret stood. Tools refuse to write it back into files. */
export const REDACTION_MARKER = "[redacted:";

const SYNTAX = /[\\^$.*+?()[\]{}|/-]/g;
/** A pattern that nothing fits. */
const NEVER = "(?!)";
/** Shorter values are found in ordinary text. */
const SHORTEST = 6;

export interface SecretFilter {
  text(text: string): string;
  /** The value itself when it holds none. */
  json(value: Json): Json;
  /** How many characters at the end of a text may be the beginning of a secret: so much of a stream is held back. */
  begun(text: string): number;
}

/** Replaces known secret values, longest first, wherever they occur in a text; `secrets` has each value's name. */
export function createSecretFilter(secrets: ReadonlyMap<string, string>): SecretFilter {
  const known = [...secrets].filter(([value]) => value.length >= SHORTEST).sort((a, b) => b[0].length - a[0].length);
  // Nearly no text holds one, and one look for all of them is done soonest.
  const any = new RegExp(known.map(([value]) => value.replaceAll(SYNTAX, String.raw`\$&`)).join("|") || NEVER);
  const clean = (text: string): string => {
    if (!any.test(text)) return text;
    let result = text;
    // By a function: in a text that replaces, `$&` in a name would put the value back.
    for (const [value, name] of known) result = result.replaceAll(value, () => `${REDACTION_MARKER}${name}]`);
    return result;
  };
  // A secret of digits alone may be said as a number.
  const numbers = known.some(([value]) => /^[-+.\deE]+$/.test(value));
  const cleaner: Cleaner = { text: clean, number: (value) => (numbers ? withoutDigits(value, clean) : value) };
  const byStart = Map.groupBy(
    known.map(([value]) => value),
    (value) => value.charAt(0),
  );
  const longest = known[0]?.[0].length ?? 0;
  return {
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
  };
}

interface Cleaner {
  text(text: string): string;
  /** The number itself when it holds none. */
  number(value: number): Json;
}

function withoutDigits(value: number, clean: (text: string) => string): Json {
  const text = String(value);
  const cleaned = clean(text);
  return cleaned === text ? value : cleaned;
}

/** Nearly nothing holds a secret, and what holds none need not be copied. */
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
