// How a reason names a command.
import type { Json } from "../base/json.ts";

/** What removes secrets from a text. */
export interface Cleaning {
  /** Masks known secrets in reasons, which may quote patterns, tools and hooks. */
  readonly mask?: (text: string) => string;
  /** Redacts what looks like a secret: in the arguments of a summary, and in the words of a command, as a list. */
  readonly redact?: (input: Json) => Json;
}

/** In characters. */
const LONGEST = 120;

/**
 * A command as a reason names it. Its words are redacted before they are quoted, as in the arguments, and the whole before it is cut:
 * later nothing finds a secret in other quotes, or half of one.
 */
export function commandExcerpt(argv: readonly string[], { mask = unchanged, redact = unchanged }: Cleaning): string {
  /** As a word of a list, which a flag before it may hide. */
  const clean = (text: string, flag?: string): string => {
    const redacted = redact(flag === undefined ? [text] : [flag, text]);
    const word: unknown = Array.isArray(redacted) ? redacted.at(-1) : undefined;
    // A list of texts is redacted to one.
    return typeof word === "string" ? word : "…";
  };
  // Each word and the blank behind it have at least two characters.
  const words = argv.slice(0, LONGEST).map((word) => mask(word));
  const shown = words.map((word, at) => inQuotes(redactedWord(word, flagBefore(words, at), clean)));
  const whole = clean(mask(shown.join(" ")));
  return whole.length <= LONGEST ? whole : `${whole.slice(0, LONGEST).toWellFormed()}…`;
}

function unchanged<T>(value: T): T {
  return value;
}

/** The flag that may name a word, also `name =` and `name=` before it. */
function flagBefore(words: readonly string[], at: number): string | undefined {
  const name = /(\w[\w.-]{0,63}) ?=$/.exec(words.slice(0, at).slice(-2).join(" "))?.[1];
  return name === undefined ? words[at - 1] : `--${name}`;
}

/**
 * The quotes of the line are gone, and without them a value such as `$x` or `a.b` reads as a reference or code, or ends at a quote in it.
 * So the settings of a word are redacted like flags, and the word and the value of `--header=value` in quotes before they are without.
 */
function redactedWord(word: string, flag: string | undefined, clean: (text: string, flag?: string) => string): string {
  if (clean("x", flag) !== "x") return clean(word, flag);
  // What stands behind a blank or a quote is found in quotes.
  const head = word.slice(0, word.search(/[\s"'`(]|$/));
  for (const { 0: name, index } of head.matchAll(/\w[\w.-]{0,63}(?==)/g)) {
    const setting = `${name}='a value'`;
    const hidden = clean(setting);
    const hasValue = word.length > index + name.length + 1;
    if (hasValue && hidden !== setting) return clean(word.slice(0, index)) + hidden.replaceAll("'", "");
  }
  const between = (text: string): string =>
    clean(`'${text.replaceAll("'", QUOTE)}'`)
      .replaceAll(/^'|'$/g, "")
      .replaceAll(QUOTE, "'");
  const sign = head.indexOf("=") + 1;
  return clean(between(word.slice(0, sign) + between(word.slice(sign))));
}

/** A quote between quotes, as a shell reads it. */
const QUOTE = String.raw`'\''`;

/** If it has blanks or quotes: without quotes, redaction would take its second word for another one. */
function inQuotes(word: string): string {
  return /[\s"']/.test(word) ? `'${word.replaceAll("'", QUOTE)}'` : word;
}
