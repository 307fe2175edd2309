// Patterns are hostile input. A regular expression could run for minutes; this matcher takes at most
// (pattern length × path length) steps.

import { matchWildcards } from "@sluice/core/runtime";

/** Matches a path, given as its names. */
export type PathMatcher = (names: readonly string[]) => boolean;

/** Matches one item: a character of a name, or a name of a path. "any" matches any number of them. */
type Wildcard = ((item: string) => boolean) | "any";

const MAX_PATTERN = 1_000;
const MAX_ALTERNATIVES = 64;
/** Characters of all alternatives together; each is tried on every path. */
const MAX_EXPANDED = 4_000;

export type GlobVerdict =
  | {
      readonly ok: true;
      readonly match: PathMatcher;
      /** Characters of all alternatives; times the length of a path, this bounds the steps of one match. */
      readonly length: number;
    }
  | { readonly ok: false; readonly reason: string };

/**
 * Compiles a glob: `*`, `?`, `[a-z]`, `[!a]`, `{a,b}`, `**` for any number of folders, `\` as escape. Parentheses are literal,
 * wildcards match leading dots, and case matters.
 */
export function compileGlob(pattern: string): GlobVerdict {
  const refuse = (reason: string): GlobVerdict => ({ ok: false, reason });
  if (pattern.trim() === "") return refuse("the pattern is empty");
  if (pattern.length > MAX_PATTERN) return refuse(`the pattern is longer than ${MAX_PATTERN} characters`);
  if (pattern.includes("\0")) return refuse("the pattern contains a NUL byte");
  if (pattern.startsWith("!")) return refuse("negation with ! is not supported");
  const alternatives = expandBraces(pattern);
  if (alternatives === undefined) return refuse(`the braces expand to more than ${MAX_ALTERNATIVES} patterns`);
  const length = alternatives.reduce((sum, alternative) => sum + alternative.length, 0);
  if (length > MAX_EXPANDED) return refuse(`the braces expand to more than ${MAX_EXPANDED} characters of patterns`);
  const matchers: PathMatcher[] = [];
  for (const alternative of alternatives) {
    if (alternative.startsWith("/") || /^[A-Za-z]:[\\/]/.test(alternative)) return refuse("the pattern is absolute");
    const names = alternative.split("/").filter((name) => name !== "" && name !== ".");
    if (names.includes("..")) return refuse("the pattern contains ..");
    if (alternative.endsWith("/")) names.push("**");
    matchers.push(compilePath(names));
  }
  return { ok: true, length, match: (path) => matchers.some((match) => match(path)) };
}

/** Compiles the names of a pattern without braces. A final `**` matches at least one name. */
export function compilePath(names: readonly string[]): PathMatcher {
  const pieces = names.map((name): Wildcard => (/^\*\*+$/.test(name) ? "any" : compileName(name)));
  if (pieces.at(-1) === "any") pieces.push(() => true);
  return (path) => fits(path, pieces);
}

function fits(items: readonly string[], pattern: readonly Wildcard[]): boolean {
  return matchWildcards(
    pattern.length,
    items.length,
    (at) => pattern[at] === "any",
    (at, index) => {
      const matches = pattern[at];
      return matches !== undefined && matches !== "any" && matches(items[index] ?? "");
    },
  );
}

function compileName(name: string): (name: string) => boolean {
  if (!/[*?[\\]/.test(name)) return (text) => text === name;
  const characters = charactersOf(name);
  // Most names already differ in the plain text at one end.
  const [begin = ""] = /^[^*?[\\]*/.exec(name) ?? [];
  const [end = ""] = /[^*?[\]\\]*$/.exec(name.slice(begin.length)) ?? [];
  return (text) => text.startsWith(begin) && text.endsWith(end) && fits(Array.from(text), characters);
}

/** A star, `?`, an escaped character, or any other one. */
const TOKEN = /\*+|\\.|./suy;
/** `[…]`, whose first member may be `]`. */
const SET = /\[([!^]|(?![!^]))((?:\\.|[^\\])(?:\\.|[^\\\]])*)\]/suy;

function charactersOf(name: string): readonly Wildcard[] {
  const characters: Wildcard[] = [];
  // If one bracket does not close, no later one does.
  let closing = true;
  for (let at = 0; at < name.length; ) {
    const set: RegExpExecArray | undefined = closing && name[at] === "[" ? matchAt(SET, name, at) : undefined;
    closing &&= name[at] !== "[" || set !== undefined;
    const [token = "", not = "", members = ""] = set ?? matchAt(TOKEN, name, at) ?? [];
    const literal = unescaped(token);
    at += token.length;
    if (set !== undefined) characters.push(compileSet(not !== "", members));
    else if (token.startsWith("*")) characters.push("any");
    else characters.push((character) => token === "?" || character === literal);
  }
  return characters;
}

function matchAt(expression: RegExp, text: string, at: number): RegExpExecArray | undefined {
  expression.lastIndex = at;
  return expression.exec(text) ?? undefined;
}

function compileSet(negated: boolean, members: string): Wildcard {
  const ranges = [...members.matchAll(/(\\.|.)(?:-(\\.|.))?/gsu)].map(
    ([, from = "", to = from]) => [codePoint(unescaped(from)), codePoint(unescaped(to))] as const,
  );
  return (character) => {
    const point = codePoint(character);
    return ranges.some(([from, to]) => point >= from && point <= to) !== negated;
  };
}

function codePoint(character: string): number {
  return character.codePointAt(0) ?? 0;
}

/** The character of an escape; another one as it is. */
function unescaped(character: string): string {
  return character.replace(/^\\(?=.)/s, "");
}

/** All patterns that the braces expand to; undefined if there are too many. */
function expandBraces(pattern: string): readonly string[] | undefined {
  const done: string[] = [];
  const open = [pattern];
  // Each round expands one pair of braces, so the work is bounded by the number of patterns times their length.
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [start, ...places] = firstBraces(next);
    if (start === undefined) done.push(next);
    let from = start ?? 0;
    for (const to of places) {
      open.push(next.slice(0, start) + next.slice(from + 1, to) + next.slice((places.at(-1) ?? to) + 1));
      from = to;
    }
    if (done.length + open.length > MAX_ALTERNATIVES) return undefined;
  }
  return done;
}

/** Where the first braces that list alternatives open, separate and close; empty if there are none. Others are literal. */
function firstBraces(pattern: string): readonly number[] {
  const open: number[][] = [];
  let first: readonly number[] = [];
  for (const { 0: mark, index } of pattern.matchAll(/\\.|[{,}]/gs)) {
    if (mark === "{") open.push([index]);
    if (mark === ",") open.at(-1)?.push(index);
    const [start = 0, ...separators] = (mark === "}" ? open.pop() : undefined) ?? [];
    if (separators.length > 0 && start < (first[0] ?? pattern.length)) first = [start, ...separators, index];
  }
  return first;
}
