// How a reason names a command.
import type { Json } from "../base/json.ts";
import type { Subject } from "./subjects.ts";

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
  const clean = cleaner(redact);
  // Each word and the blank behind it have at least two characters.
  const words = argv.slice(0, LONGEST).map((word) => mask(word));
  const shown = words.map((word, at) => inQuotes(redactedWord(word, flagBefore(words, at), clean)));
  return cut(clean(mask(shown.join(" "))));
}

/**
 * A reason that may repeat words of the call, without what redaction hides in the arguments: without the quotes of the line, nothing
 * would find it later.
 */
export function cleanReason(
  reason: string,
  subjects: readonly Subject[],
  { mask = unchanged, redact = unchanged }: Cleaning,
): string {
  const clean = cleaner(redact);
  const hidden: (readonly [text: string, marker: string])[] = [];
  const long: string[] = [];
  const hide = (text: string, flag?: string): void => {
    // Most words are plain: redaction of the reason finds what it would find in one.
    const shown = PLAIN_WORD.test(text) && !flag?.startsWith("-") ? text : redactedWord(text, flag, clean);
    if (shown !== text) {
      const spans = differences(text, shown);
      const isFound = spans.length > 0 && spans.every(([span]) => span.length >= SHORTEST);
      hidden.push(...(isFound ? spans : [[text, shown] as const]));
    }
    if (shown.length > LONGEST) long.push(shown);
  };
  let result = mask(reason);
  for (const subject of subjects) {
    if (subject.kind === "path") hide(mask(subject.real));
    if (subject.kind === "line" && subject.unread !== undefined) {
      const spans = differences(subject.unread, clean(subject.unread));
      const pieces = spans.flatMap(([span]) => span.split(/[\s"']+/)).filter((piece) => piece.length >= SHORTEST);
      if (pieces.some((piece) => result.includes(piece))) return UNSHOWN;
    }
    if (subject.kind !== "command") continue;
    const words = subject.argv.map((word) => mask(word));
    for (const [at, word] of words.entries()) hide(word, flagBefore(words, at));
  }
  if (hidden.some(([text]) => text.length < SHORTEST && result.includes(text))) return UNSHOWN;
  // The longest first, since one may be part of another.
  for (const [text, marker] of hidden.toSorted((a, b) => b[0].length - a[0].length))
    result = result.replaceAll(text, () => marker);
  for (const word of long) result = result.replaceAll(word, () => cut(word));
  return result;
}

const PLAIN_WORD = /^[\w./@+-]*$/;
/** A shorter hidden text may stand anywhere in a reason. */
const SHORTEST = 4;
const UNSHOWN = "the reason would show what the arguments hide";

/** What the markers of a redacted text stand for. */
function differences(text: string, redacted: string): readonly (readonly [span: string, marker: string])[] {
  const markers = [...redacted.matchAll(MARKER)];
  let at = 0;
  let end = 0;
  return markers.map(({ 0: marker, index }, number) => {
    at += index - end;
    end = index + marker.length;
    const next = markers[number + 1];
    const kept = redacted.slice(end, next?.index);
    const from = at;
    at = Math.max(at, next === undefined ? text.length - kept.length : text.indexOf(kept, at));
    return [text.slice(from, at), marker];
  });
}

const MARKER = /\[redacted:[^\]]*\]/g;

function cut(text: string): string {
  return text.length <= LONGEST ? text : `${text.slice(0, LONGEST).toWellFormed()}…`;
}

/** Redacts a text, as a word of a list that a flag before it may hide. */
function cleaner(redact: (input: Json) => Json): (text: string, flag?: string) => string {
  return (text, flag) => {
    const redacted = redact(flag === undefined ? [text] : [flag, text]);
    const word: unknown = Array.isArray(redacted) ? redacted.at(-1) : undefined;
    // A list of texts is redacted to one.
    return typeof word === "string" ? word : "…";
  };
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
