import type { SignalMessage } from "@sluice/core";
import { createSecretFilter, type SecretFilter } from "@sluice/core/runtime";

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
  const slashed = plain.replaceAll("/", "\\/");
  const forms = [
    plain,
    slashed,
    // As Go writes it, Gson, Python, PHP and .NET.
    coded(plain, /[<>&]/g),
    coded(plain, /[<>&='\u2028\u2029]/g),
    coded(plain, /[^ -~]/g),
    coded(slashed, /[^ -~]/g),
    coded(plain.replaceAll('\\"', '"'), /["<>&'+`]|[^ -~]/g, (code) => code.toUpperCase()),
  ];
  return [...forms, ...forms.map(escaped)];
}

/** Escapes characters as four hexadecimal digits. */
function coded(text: string, characters: RegExp, letters = (code: string): string => code): string {
  return text.replaceAll(characters, (one) => `\\u${letters(one.charCodeAt(0).toString(16).padStart(4, "0"))}`);
}

/** As JavaScript encodes a component, RFC 3986 (also with its slashes kept), and a form. */
function urlForms(value: string): readonly string[] {
  const component = encodeURIComponent(value);
  const strict = component.replaceAll(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`);
  const form = new URLSearchParams([["", value]]).toString().slice(1);
  return [component, strict, strict.replaceAll("%2F", "/"), form].flatMap((encoded) => [
    encoded,
    encoded.replaceAll(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()),
  ]);
}

/** Shorter lines are found only with the rest of their secret. */
const SHORTEST_LINE = 16;
/** Shorter words of a line of several are found only with the rest of their secret: they may be names that other files use. */
const SHORTEST_WORD = 32;
/**
 * The lines of a secret such as a PEM file, for where each has its number before it or only some are shown; of lines with blanks
 * and of JSON, the words that look like keys. In variables, `\n` often stands for the end of a line.
 */
function partsOf(value: string): readonly string[] {
  if (!/[\n{]|\\n/.test(value)) return [];
  return value
    .split(/\r?\n|(?:\\r)?\\n/)
    .flatMap((line) =>
      /[\s{]/.test(line)
        ? line.split(/[^\w+/=-]+/).filter((word) => word.length >= SHORTEST_WORD && looksRandom(word))
        : line.length >= SHORTEST_LINE
          ? [line]
          : [],
    );
}

/** Excludes passwords such as `postgres`: redacting ordinary words would break files and protect nothing. */
export function looksRandom(text: string): boolean {
  return text.length >= 16 && /\d/.test(text) && /[A-Za-z]/.test(text) && !/\s/.test(text);
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

/** Masks the secrets that any run of a session knows in what the store would keep unfiltered; `known` may grow. */
export function maskOutgoing(known: ReadonlyMap<string, string>) {
  const filter = (): SecretFilter => createSecretFilter(secretForms(known));
  return {
    signal: (signal: SignalMessage): SignalMessage => {
      const secrets = filter();
      return { ...signal, payload: secrets.json(signal.payload), by: secrets.text(signal.by) };
    },
    text: (text: string): string => filter().text(text),
  };
}

/**
 * The beginning of a text, without the word that would be cut: known secrets are masked later, and half of one would not be found.
 * Words end at whatever is no visible ASCII character.
 */
export function wholeWords(text: string, longest: number): string {
  if (text.length <= longest) return text;
  let end = longest;
  while (end > 0 && /[!-~]/.test(text.charAt(end))) end -= 1;
  const isHalfPair = /[\ud800-\udbff]/.test(text.charAt(end - 1));
  return text.slice(0, isHalfPair ? end - 1 : end);
}

/** A text that was cut, without the word at its end, which may have gone on. */
export function withoutCutWord(text: string): string {
  return wholeWords(`${text}-`, text.length);
}
