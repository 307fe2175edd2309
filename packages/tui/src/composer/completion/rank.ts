/** Whether a text contains the characters of a query in order; case counts. */
export function holdsInOrder(text: string, query: string): boolean {
  let at = 0;
  for (let index = 0; index < text.length && at < query.length; index += 1)
    if (text.charCodeAt(index) === query.charCodeAt(at)) at += 1;
  return at === query.length;
}

/** How well a name matches a query, best first: whole, prefix, prefix of a word, part, letters in order; else undefined. */
function matchRank(name: string, query: string): number | undefined {
  const text = name.toLowerCase();
  const wanted = query.toLowerCase();
  if (text === wanted) return 0;
  if (text.startsWith(wanted)) return 1;
  const at = text.indexOf(wanted);
  if (at === -1) return holdsInOrder(text, wanted) ? 4 : undefined;
  const wordStarts = /[^\p{L}\p{N}]$/u.test(text.slice(0, at)) || /^\p{Lu}/u.test(name.slice(at));
  return wordStarts ? 2 : 3;
}

/** The items that match a query, best first, at most `most`. */
export function ranked<T>(items: readonly T[], nameOf: (item: T) => string, query: string, most: number): readonly T[] {
  if (query === "") return items.slice(0, most);
  const matches = items.flatMap((item) => {
    const rank = matchRank(nameOf(item), query);
    return rank === undefined ? [] : [{ item, rank }];
  });
  return matches
    .sort((a, b) => a.rank - b.rank)
    .slice(0, most)
    .map(({ item }) => item);
}
