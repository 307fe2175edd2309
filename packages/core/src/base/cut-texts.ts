// The beginning of a text that is too long, with `…` at its end.

/** At most `most` characters of a text and `…`, or the text itself if it is not longer. Never cuts a surrogate pair. */
export function shortened(text: string, most: number): string {
  if (text.length <= most) return text;
  const isPair = (text.codePointAt(most - 1) ?? 0) > 0xffff;
  return `${text.slice(0, isPair ? most - 1 : most).toWellFormed()}…`;
}

/** ASCII without blanks: most texts in other scripts have no blanks between words, and no secrets in them. */
const LAST_WORD = /[\x21-\x7e]+$/;
/** Words in quotes that are not closed. */
const OPEN_QUOTE = /(?:^|[\s=:,([{])\\{0,8}(["'`])(?:(?!\1)[\s\S]){0,500}$/;

/**
 * The same for a text of a record. Has no word and no words in quotes that the cut would halve, since redaction would not recognize
 * half of a secret.
 */
export function wholeWords(text: string, most: number): string {
  if (text.length <= most) return text;
  const head = text.slice(0, most).toWellFormed();
  const words = LAST_WORD.test(text.charAt(most)) ? head.replace(LAST_WORD, "") : head;
  return `${words.slice(0, OPEN_QUOTE.exec(words)?.index)}…`;
}
