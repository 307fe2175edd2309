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
