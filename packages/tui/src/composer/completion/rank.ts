/** Whether the characters of a query stand in a text in this order. Both in the case that counts. */
export function holdsInOrder(text: string, query: string): boolean {
  let at = 0;
  for (let index = 0; index < text.length && at < query.length; index += 1)
    if (text.charCodeAt(index) === query.charCodeAt(at)) at += 1;
  return at === query.length;
}

/**
 * How well a name fits what was typed of it, the lower the better: the name itself, its beginning, the beginning of a word
 * in it, any part of it, its letters in order. Undefined where it does not fit. Case does not count.
 */
function fitOf(name: string, query: string): number | undefined {
  const text = name.toLowerCase();
  const typed = query.toLowerCase();
  if (text === typed) return 0;
  if (text.startsWith(typed)) return 1;
  const at = text.indexOf(typed);
  if (at === -1) return holdsInOrder(text, typed) ? 4 : undefined;
  const wordStarts = /[^\p{L}\p{N}]$/u.test(text.slice(0, at)) || /^\p{Lu}/u.test(name.slice(at));
  return wordStarts ? 2 : 3;
}

/** What fits a query, the best first, otherwise in the order given; at most `most`. */
export function ranked<T>(items: readonly T[], nameOf: (item: T) => string, query: string, most: number): readonly T[] {
  if (query === "") return items.slice(0, most);
  const fits = items.flatMap((item) => {
    const fit = fitOf(nameOf(item), query);
    return fit === undefined ? [] : [{ item, fit }];
  });
  return fits
    .sort((a, b) => a.fit - b.fit)
    .slice(0, most)
    .map(({ item }) => item);
}
