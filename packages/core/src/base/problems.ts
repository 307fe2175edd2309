import type { Problem, TextPlace } from "./errors.ts";

/** Collects problems, so that all are reported at once. */
export interface Report {
  readonly problems: readonly Problem[];
  add(path: string, message: string, suggestion?: string, place?: TextPlace): void;
  /** Adds another report's problems, under a path. */
  include(path: string, problems: readonly Problem[]): void;
  /** Reports unknown keys, each with the closest known one. */
  unknownKeys(path: string, value: object, known: readonly string[]): void;
}

export function createReport(): Report {
  const problems: Problem[] = [];
  const add: Report["add"] = (path, message, suggestion, place) => {
    const hint = suggestion === undefined ? {} : { suggestion };
    problems.push({ path, message, ...hint, ...(place === undefined ? {} : { place }) });
  };
  return {
    problems,
    add,
    include: (path, found) => {
      for (const problem of found) problems.push({ ...problem, path: inside(path, problem.path) });
    },
    unknownKeys: (path, value, known) => {
      for (const key of Object.keys(value)) {
        if (!known.includes(key)) add(inside(path, key), "is not a known option", suggestOneOf(key, known));
      }
    },
  };
}

function inside(path: string, rest: string): string {
  return path === "" ? rest : `${path}.${rest}`;
}

const MAX_WORD = 64;

/** The candidate closest to a misspelled word, ignoring case; undefined if none is close. */
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

/** A suggestion for a message: the closest candidate, else a list of them. */
export function suggestOneOf(word: string, candidates: Iterable<string>): string | undefined {
  const all = [...candidates];
  const close = didYouMean(word, all);
  if (close !== undefined) return `did you mean "${close}"?`;
  if (all.length === 0) return undefined;
  return `there is ${all.slice(0, 12).join(", ")}${all.length > 12 ? ", …" : ""}`;
}

/** How many insertions, deletions, replacements and swaps of neighbours turn one word into the other. */
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

/** Ids of pipelines and states, and names of completion tools. */
const ID_GRAMMAR = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/;
/** Words with a meaning in routes, which cannot be ids. */
const RESERVED_IDS: ReadonlySet<string> = new Set(["$return", "$end", "*", "interrupted"]);
/** Names of inherited members, which a lookup by id would find. */
const INHERITED: ReadonlySet<string> = new Set(Object.getOwnPropertyNames(Object.prototype));

/** What is wrong with an id; undefined if nothing is. */
export function idFault(id: unknown): string | undefined {
  if (typeof id !== "string") return `an id is a string, not ${id === null ? "null" : typeof id}`;
  if (RESERVED_IDS.has(id)) return `"${id}" is reserved`;
  if (INHERITED.has(id)) return `"${id}" is a name every object has`;
  if (!ID_GRAMMAR.test(id))
    return `${JSON.stringify(id.slice(0, 80))} is not an id: a letter, then up to 63 letters, digits, _ or -`;
  return undefined;
}
