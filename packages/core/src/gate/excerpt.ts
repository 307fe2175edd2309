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
export function commandExcerpt(argv: readonly string[], { mask, redact }: Cleaning): string {
  /** As a word of a list, which a flag before it may hide. */
  const clean = (text: string, flag?: string): string => {
    const masked = mask?.(text) ?? text;
    const list = flag === undefined ? [masked] : [flag, masked];
    const redacted = redact === undefined ? list : redact(list);
    const word: unknown = Array.isArray(redacted) ? redacted.at(-1) : undefined;
    // A list of texts is redacted to one.
    return typeof word === "string" ? word : "…";
  };
  // Each word and the blank behind it have at least two characters.
  const words = argv.slice(0, LONGEST);
  const whole = clean(words.map((word, at) => shownWord(clean(word, flagBefore(words, at)), clean)).join(" "));
  return whole.length <= LONGEST ? whole : `${whole.slice(0, LONGEST).toWellFormed()}…`;
}

/** The flag that may name a word, also `name =` and `name=` before it. */
function flagBefore(words: readonly string[], at: number): string | undefined {
  const name = /(\w[\w.-]{0,63}) ?=$/.exec(words.slice(0, at).slice(-2).join(" "))?.[1];
  return name === undefined ? words[at - 1] : `--${name}`;
}

/**
 * A word as its line may have had it. The quotes of the line are gone, and without them a value such as `$x` or `a.b` reads as a
 * reference or code: so its settings are redacted like flags, and it is redacted in quotes too. They stay if it has blanks or quotes,
 * without which its second word would be taken for another one.
 */
function shownWord(word: string, clean: (text: string, flag?: string) => string): string {
  let own = word;
  // What stands behind a blank or a quote is found in quotes.
  const head = word.slice(0, word.search(/[\s"'`(]|$/));
  for (const { 0: name, index } of head.matchAll(/\w[\w.-]{0,63}(?==)/g)) {
    if (clean("x", `--${name}`) === "x") continue;
    const start = index + name.length + 1;
    own = word.slice(0, start) + clean(word.slice(start), `--${name}`);
    break;
  }
  const quoted = `'${own.replaceAll("'", String.raw`'\''`)}'`;
  const redacted = clean(quoted);
  return redacted === quoted && !/[\s"']/.test(own) ? own : redacted;
}
