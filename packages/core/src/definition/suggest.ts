const MAX_WORD = 64;

/** The candidate closest to a misspelt word, or undefined when none is close enough to be meant. Case counts little. */
export function didYouMean(word: string, candidates: Iterable<string>): string | undefined {
  if (word.length > MAX_WORD) return undefined;
  const limit = Math.max(1, Math.floor(word.length / 3));
  let best: string | undefined;
  let bestDistance = limit + 1;
  for (const candidate of candidates) {
    if (candidate === word || candidate.length > MAX_WORD) continue;
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** A suggestion for a message: the closest candidate, else the list of what there is. */
export function suggestOneOf(word: string, candidates: Iterable<string>): string | undefined {
  const all = [...candidates];
  const close = didYouMean(word, all);
  if (close !== undefined) return `did you mean "${close}"?`;
  if (all.length === 0) return undefined;
  return `there is ${all.slice(0, 12).join(", ")}${all.length > 12 ? ", …" : ""}`;
}

/** Insertions, deletions, replacements and swaps of neighbours that turn one word into the other. */
function editDistance(from: string, to: string): number {
  let before: readonly number[] = [];
  let last: readonly number[] = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row += 1) {
    const next: number[] = [row];
    for (let column = 1; column <= to.length; column += 1) {
      const same = from[row - 1] === to[column - 1];
      let cost = Math.min(
        (last[column] ?? 0) + 1,
        (next[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (same ? 0 : 1),
      );
      const swapped = row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      if (swapped) cost = Math.min(cost, (before[column - 2] ?? 0) + 1);
      next.push(cost);
    }
    before = last;
    last = next;
  }
  return last[to.length] ?? 0;
}
