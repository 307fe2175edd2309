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
/** More edits are not a misspelling. */
const MOST_EDITS = 8;
/** Candidates that are compared: a file can make up thousands of names, and mistake all of them. */
const MOST_CANDIDATES = 250;

/** The candidate closest to a misspelled word, ignoring case; undefined if none is close. */
export function didYouMean(word: string, candidates: Iterable<string>): string | undefined {
  if (word.length > MAX_WORD) return undefined;
  const limit = Math.min(MOST_EDITS, Math.max(1, Math.floor(word.length / 3)));
  let best: string | undefined;
  let bestDistance = limit + 1;
  let compared = 0;
  for (const candidate of candidates) {
    compared += 1;
    if (compared > MOST_CANDIDATES) break;
    if (candidate === word || candidate.length > MAX_WORD) continue;
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase(), bestDistance);
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
  if (all.length < 2) return all.length === 0 ? undefined : `use ${all.join("")}`;
  return `use one of ${all.slice(0, 12).join(", ")}${all.length > 12 ? ", …" : ""}`;
}

/**
 * How many insertions, deletions, replacements and swaps of neighbours turn one word into the other, or `limit` if not fewer. Only
 * cells near the diagonal can be fewer, so names that a file makes up cost little.
 */
function editDistance(from: string, to: string, limit: number): number {
  if (Math.abs(from.length - to.length) >= limit) return limit;
  const size = to.length + 2;
  let [before, last, next] = [new Uint8Array(size), new Uint8Array(size), new Uint8Array(size)];
  last.fill(limit);
  for (let column = 0; column < limit && column <= to.length; column += 1) last[column] = column;
  for (let at = 1; at <= from.length; at += 1) {
    const first = Math.min(size - 1, Math.max(1, at - limit + 1));
    const end = Math.min(to.length, at + limit - 1);
    next[first - 1] = first === 1 ? at : limit;
    for (let column = first; column <= end; column += 1) {
      const same = from[at - 1] === to[column - 1];
      let cost = Math.min(
        (last[column] ?? limit) + 1,
        (next[column - 1] ?? limit) + 1,
        (last[column - 1] ?? limit) + (same ? 0 : 1),
      );
      const swapped = at > 1 && column > 1 && from[at - 1] === to[column - 2] && from[at - 2] === to[column - 1];
      if (swapped) cost = Math.min(cost, (before[column - 2] ?? limit) + 1);
      next[column] = cost;
    }
    next[end + 1] = limit;
    [before, last, next] = [last, next, before];
  }
  return Math.min(limit, last[to.length] ?? limit);
}

/** Ids of pipelines and states, and names of completion tools. */
const ID_GRAMMAR = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/;
/** Words with a meaning in routes, which cannot be ids. */
const RESERVED_IDS: ReadonlySet<string> = new Set(["$return", "$end", "*", "interrupted"]);
/** Names of inherited members, which a lookup by id would find. */
const INHERITED: ReadonlySet<string> = new Set(Object.getOwnPropertyNames(Object.prototype));

/** What is wrong with an id; undefined if nothing is. */
export function idFault(id: unknown): string | undefined {
  if (typeof id !== "string") return `an id must be a string, not ${id === null ? "null" : typeof id}`;
  if (RESERVED_IDS.has(id)) return `"${id}" is reserved`;
  if (INHERITED.has(id)) return `"${id}" is a name every object has`;
  if (!ID_GRAMMAR.test(id))
    return `${JSON.stringify(id.slice(0, 80))} is not an id: a letter, then up to 63 letters, digits, _ or -`;
  return undefined;
}
