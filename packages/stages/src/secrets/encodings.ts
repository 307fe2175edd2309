import type { Json, SignalMessage } from "@sluice/core";
import { createSecretFilter, type SecretFilter } from "@sluice/core/runtime";
import { isKeySetting, isKeyWord, looksLikeKey } from "./key-names.ts";

/**
 * Every encoding in which known secrets are searched for, with the secret's name: plain, in JSON as encoders write it, in JSON
 * nested in JSON, in URLs, in base64 at any offset of a longer text (as in basic authorization), and in hex; of a secret with
 * parts, such as a PEM file or a JSON key, also each part.
 */
export function secretForms(secrets: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  const forms = new Map<string, string>();
  // Longest first: a longer secret may contain a shorter one.
  for (const [value, name] of [...secrets].sort(([a], [b]) => b.length - a.length)) {
    for (const form of [...formsOf(value), ...partsOf(value)]) if (!forms.has(form)) forms.set(form, name);
  }
  return forms;
}

function formsOf(value: string): readonly string[] {
  const bytes = Buffer.from(value);
  const hex = bytes.toString("hex");
  const forms = [value, ...jsonForms(value), ...urlForms(value.toWellFormed()), hex, hex.toUpperCase()];
  return [...forms, ...[0, 1, 2].flatMap((before) => base64Of(bytes, before))];
}

/** Tool arguments are JSON in JSON, and providers quote them in errors. */
function jsonForms(value: string): readonly string[] {
  const plain = escaped(value);
  const forms = new Set([plain]);
  const slashed = plain.replaceAll("/", "\\/");
  forms.add(slashed);
  if (CODED.test(plain)) {
    // As Go writes it, Gson, Python, PHP and .NET.
    forms.add(coded(plain, /[<>&\u2028\u2029]/g));
    forms.add(coded(plain, /[<>&='\u2028\u2029]/g));
    forms.add(coded(plain, /[^ -~]/g));
    forms.add(coded(slashed, /[^ -~]/g));
    forms.add(coded(plain.replaceAll('\\"', '"'), /["<>&'+`]|[^ -~]/g, (code) => code.toUpperCase()));
  }
  return [...forms].flatMap((form) => [form, escaped(form)]);
}

/** What an encoder of JSON may write as a code. */
const CODED = /["<>&'=+`]|[^ -~]/;

/** Escapes characters as four hexadecimal digits. */
function coded(text: string, characters: RegExp, letters = (code: string): string => code): string {
  return text.replaceAll(characters, (one) => `\\u${letters(one.charCodeAt(0).toString(16).padStart(4, "0"))}`);
}

/**
 * As encoders of URLs write it: JavaScript's for a component, a form and the user of a URL; and RFC 3986, also with slashes kept, or
 * with `+` for a blank.
 */
function urlForms(value: string): readonly string[] {
  const component = encodeURIComponent(value);
  if (PLAIN.test(component)) return [component];
  const strict = component.replaceAll(/[!'()*]/g, percent);
  const forms = new Set([
    component,
    strict,
    strict.replaceAll("%2F", "/"),
    strict.replaceAll("%20", "+"),
    component.replaceAll(/[!'()~]/g, percent).replaceAll("%20", "+"),
    component.replaceAll(/%2[4-6BC]/g, decodeURIComponent),
  ]);
  return [...forms].flatMap((encoded) => [encoded, encoded.replaceAll(PERCENT_CODE, (code) => code.toLowerCase())]);
}

/** What no encoder of URLs changes. */
const PLAIN = /^[\w.-]*$/;
/** Codes with a letter, which encoders write in upper or lower case. */
const PERCENT_CODE = /%(?:[A-F][0-9A-F]|[0-9][A-F])/g;

function percent(one: string): string {
  return `%${one.charCodeAt(0).toString(16).toUpperCase()}`;
}

function escaped(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

/** The base64 characters that depend on `bytes` alone if the number of bytes before them is `before` modulo three. */
function base64Of(bytes: Buffer, before: number): readonly string[] {
  const first = Math.ceil((8 * before) / 6);
  const end = Math.floor((8 * (before + bytes.length)) / 6);
  const shifted = Buffer.concat([Buffer.alloc(before), bytes]);
  return [shifted.toString("base64").slice(first, end), shifted.toString("base64url").slice(first, end)];
}

/** Shorter lines are found only with the rest of their secret. */
const SHORTEST_LINE = 16;
/** Shorter words of other lines are found only with the rest of their secret: they may be names that other files use. */
const SHORTEST_WORD = 32;
/** The length of its scheme is limited, so that no text takes long to search. */
const ADDRESS = /\b[a-z][a-z0-9+.-]{0,30}:\/\/[^\s"'\\]+/gi;
/** A name with its value, in JSON, YAML, connection strings and files of variables. */
const NAMED = /(?<![\w.-])([\w.-]+)\\?["']?\s?[:=]\s?\\?["']?([^\s"',;\\}]+)/g;
/** A pair of a connection string: names that only such pairs have, so that any variable may be searched for them. */
const PAIR =
  /(?:^|[;\s])\s?(?:(?:account|access|sharedaccess|api|secret)_?key|password|pwd|sharedaccesssignature|secret)\s?=\s?([^;\s]+)/gi;

/**
 * What is also searched for on its own, since lines may be numbered or shown in part: the lines of a secret such as a PEM file; of
 * lines with blanks and of JSON, the values with names of keys and the words that look like keys. In variables, `\n` often stands for
 * the end of a line.
 */
function partsOf(value: string): readonly string[] {
  if (!/[\n{]|\\n/.test(value)) return [];
  return value.split(/\r?\n|(?:\\r)?\\n/).flatMap((line) => {
    const text = line.trim();
    if (/[\s{}"]|^[A-Za-z_]\w*=[^=]/.test(text)) return keysIn(text);
    return text.length >= SHORTEST_LINE ? [text] : [];
  });
}

function keysIn(line: string): readonly string[] {
  const own = line.replaceAll(ADDRESS, " ");
  const named = [...own.matchAll(NAMED)].filter(
    ([, name = "", value = ""]) => isKeySetting(name) && looksLikeKey(value),
  );
  const words = own.split(/[^\w+/=-]+/).filter((word) => word.length >= SHORTEST_WORD && isKeyWord(word));
  return [...named.map(([, , value = ""]) => value), ...words];
}

/** The keys in a connection string, such as `AccountKey=…;`. */
export function pairedKeys(value: string): readonly string[] {
  return [...value.matchAll(PAIR)].flatMap(([, key = ""]) => (looksLikeKey(key) ? [key] : []));
}

/** Masks the secrets that any run of a session knows in what the store would keep unfiltered; `known` may grow. */
export function maskOutgoing(known: ReadonlyMap<string, string>) {
  const filter = (): SecretFilter => createSecretFilter(secretForms(known));
  return {
    signal: (signal: SignalMessage): SignalMessage => {
      const secrets = filter();
      return { ...signal, payload: secrets.json(signal.payload), by: secrets.text(signal.by) };
    },
    text: (text: string): string => filter().text(text),
    json: (value: Json): Json => filter().json(value),
  };
}
