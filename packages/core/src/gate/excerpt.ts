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

/** A command as a reason names it. A long one is masked and redacted before it is cut: nothing finds half of a secret later. */
export function commandExcerpt(argv: readonly string[], { mask, redact }: Cleaning): string {
  const whole = argv.map(wordOf).join(" ");
  if (whole.length <= LONGEST) return whole;
  const masked = mask?.(whole) ?? whole;
  const clean = redact?.(masked) ?? masked;
  // A text is redacted to a text.
  if (typeof clean !== "string") return "…";
  return clean.length <= LONGEST ? clean : `${clean.slice(0, LONGEST).toWellFormed()}…`;
}

/** In quotes if it has blanks: without them, redaction would take its second word for another one. */
function wordOf(word: string): string {
  return /[\s"']/.test(word) ? `'${word.replaceAll("'", String.raw`'\''`)}'` : word;
}
