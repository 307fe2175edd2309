// A property as a machine of two or three conditions that follows what happens in a run.

import type { Property, Word } from "./property.ts";

/** Where a property is: `open` at the start, `armed` or `owing` after its second word, `held` when nothing can break it any more. */
export type Watched = "open" | "armed" | "owing" | "held" | "broken";

export interface Watch {
  readonly start: Watched;
  /** The words that matter. */
  readonly words: readonly Word[];
  /** After a word has happened. */
  next(at: Watched, word: Word): Watched;
  /** Whether a run that completes here breaks the property. */
  isOwed(at: Watched): boolean;
}

export function watchOf(property: Property): Watch {
  const { kind, what, order } = property;
  const isWhat = (word: Word): boolean => same(word, what);
  const isOther = (word: Word): boolean => order !== undefined && same(word, order.of);
  const words = order === undefined ? [what] : [what, order.of];
  const watch = (start: Watched, next: Watch["next"]): Watch => ({
    start,
    words,
    next: (at, word) => (at === "held" || at === "broken" ? at : next(at, word)),
    isOwed: (at) => at === "owing",
  });
  if (order === undefined) {
    if (kind === "never") return watch("open", (at, word) => (isWhat(word) ? "broken" : at));
    return watch("owing", (at, word) => (isWhat(word) ? "held" : at));
  }
  if (kind === "never" && order.is === "after")
    return watch("open", (at, word) => {
      if (at === "armed" && isWhat(word)) return "broken";
      return isOther(word) ? "armed" : at;
    });
  // Always A before B says that B never happens before A.
  if (order.is === "before") {
    const [early, late] = kind === "never" ? [isWhat, isOther] : [isOther, isWhat];
    return watch("open", (at, word) => {
      if (late(word)) return "held";
      return early(word) ? "broken" : at;
    });
  }
  return watch("open", (at, word) => {
    if (isOther(word)) return "owing";
    return isWhat(word) ? "open" : at;
  });
}

function same(one: Word, other: Word): boolean {
  if (one.kind === "state") return other.kind === "state" && one.id === other.id;
  if (one.kind === "tool") return other.kind === "tool" && one.name === other.name;
  return other.kind === "approved";
}
