/** ASCII without blanks: most texts in other scripts have no blanks between words, and no secrets in them. */
const LAST_WORD = /[\x21-\x7e]+$/;
/** Words in quotes that are not closed. */
const OPEN_QUOTE = /(?:^|[\s=:,([{])\\{0,8}(["'`])(?:(?!\1)[\s\S]){0,500}$/;

/**
 * The beginning of a text that is too long for a record, with `…` at its end. Has no word and no words in quotes that the cut would
 * halve, since redaction would not recognize half of a secret.
 */
export function wholeWords(text: string, most: number): string {
  if (text.length <= most) return text;
  const head = text.slice(0, most).toWellFormed();
  const words = LAST_WORD.test(text.charAt(most)) ? head.replace(LAST_WORD, "") : head;
  return `${words.slice(0, OPEN_QUOTE.exec(words)?.index)}…`;
}
