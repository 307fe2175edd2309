// How a reason names a command.
import type { Json } from "../base/json.ts";

/** What removes secrets from a text. */
export interface Cleaning {
  /** Masks known secrets in reasons, which may quote patterns, tools and hooks. */
  readonly mask?: (text: string) => string;
  /** Redacts what looks like a secret: in the arguments of a summary, and in a text that is cut. */
  readonly redact?: (input: Json) => Json;
}

/** In characters. */
const LONGEST = 120;

/**
 * A command as a reason names it. Its words are redacted before they are quoted, as in the arguments, and the whole before it is cut:
 * later nothing finds a secret in other quotes, or half of one.
 */
export function commandExcerpt(argv: readonly string[], { mask, redact }: Cleaning): string {
  const clean = (text: string): string => {
    const masked = mask?.(text) ?? text;
    const redacted = redact?.(masked) ?? masked;
    // A text is redacted to a text.
    return typeof redacted === "string" ? redacted : "…";
  };
  // Each word and the blank behind it have at least two characters.
  const whole = clean(
    argv
      .slice(0, LONGEST)
      .map((word) => wordOf(clean(word)))
      .join(" "),
  );
  return whole.length <= LONGEST ? whole : `${whole.slice(0, LONGEST).toWellFormed()}…`;
}

/** In quotes if it has blanks: without them, redaction would take its second word for another one. */
function wordOf(word: string): string {
  return /[\s"']/.test(word) ? `'${word.replaceAll("'", String.raw`'\''`)}'` : word;
}
