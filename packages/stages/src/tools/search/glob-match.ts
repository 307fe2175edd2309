// Patterns are hostile input. A regular expression could run for minutes; this matcher takes at most
// (pattern length × path length) steps.

/** Matches a path, given as its names. */
export type PathMatcher = (names: readonly string[]) => boolean;

type Token =
  | { readonly kind: "character"; readonly character: string }
  | { readonly kind: "one" }
  | { readonly kind: "star" }
  | { readonly kind: "set"; readonly negated: boolean; readonly ranges: readonly (readonly [number, number])[] };
/** Matches one name, or any number of folders. */
type Piece = ((name: string) => boolean) | "folders";

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
 * Compiles a glob: `*`, `?`, `[a-z]`, `[!a]`, `{a,b}`, `{1..3}`, `**` for any number of folders, `\` as escape. Parentheses are
 * literal, wildcards match leading dots, and case matters.
 */
export function compileGlob(pattern: string): GlobVerdict {
  if (pattern.trim() === "") return { ok: false, reason: "the pattern is empty" };
  if (pattern.length > MAX_PATTERN)
    return { ok: false, reason: `the pattern is longer than ${MAX_PATTERN} characters` };
  if (pattern.includes("\0")) return { ok: false, reason: "the pattern contains a NUL byte" };
  if (pattern.startsWith("!")) return { ok: false, reason: "negation with ! is not supported" };
  const alternatives = expandBraces(pattern);
  if (alternatives === undefined)
    return { ok: false, reason: `the braces expand to more than ${MAX_ALTERNATIVES} patterns` };
  const length = alternatives.reduce((sum, alternative) => sum + alternative.length, 0);
  if (length > MAX_EXPANDED)
    return { ok: false, reason: `the braces expand to more than ${MAX_EXPANDED} characters of patterns` };
  const matchers: PathMatcher[] = [];
  for (const alternative of alternatives) {
    if (alternative.startsWith("/") || /^[A-Za-z]:[\\/]/.test(alternative))
      return { ok: false, reason: "the pattern is absolute" };
    const names = alternative.split("/").filter((name) => name !== "" && name !== ".");
    if (names.includes("..")) return { ok: false, reason: "the pattern contains .." };
    if (alternative.endsWith("/")) names.push("**");
    matchers.push(compilePath(names));
  }
  return { ok: true, length, match: (path) => matchers.some((match) => match(path)) };
}

/** Compiles the names of a pattern without braces. A final `**` matches at least one name. */
export function compilePath(names: readonly string[]): PathMatcher {
  const pieces: Piece[] = names.map((name) => (/^\*\*+$/.test(name) ? "folders" : compileName(name)));
  if (pieces.at(-1) === "folders") pieces.push(() => true);
  return (path) => matchPath(pieces, path);
}

function matchPath(pieces: readonly Piece[], path: readonly string[]): boolean {
  return matchWildcards(
    pieces.length,
    path.length,
    (piece) => pieces[piece] === "folders",
    (piece, name) => {
      const matchName = pieces[piece];
      return matchName !== undefined && matchName !== "folders" && matchName(path[name] ?? "");
    },
  );
}

function matchName(tokens: readonly Token[], name: string): boolean {
  const characters = Array.from(name);
  return matchWildcards(
    tokens.length,
    characters.length,
    (at) => tokens[at]?.kind === "star",
    (at, index) => matchCharacter(tokens[at], characters[index] ?? ""),
  );
}

/** Matches a pattern with stars by backtracking to the last star only: at most pattern length × text length steps. */
function matchWildcards(
  patternLength: number,
  textLength: number,
  isStar: (at: number) => boolean,
  matches: (at: number, index: number) => boolean,
): boolean {
  let at = 0;
  let index = 0;
  let star = -1;
  let swallowed = 0;
  while (index < textLength) {
    if (at < patternLength && isStar(at)) {
      star = at;
      swallowed = index;
      at += 1;
    } else if (at < patternLength && matches(at, index)) {
      at += 1;
      index += 1;
    } else if (star !== -1) {
      swallowed += 1;
      index = swallowed;
      at = star + 1;
    } else {
      return false;
    }
  }
  while (at < patternLength && isStar(at)) at += 1;
  return at === patternLength;
}

function matchCharacter(token: Token | undefined, character: string): boolean {
  if (token === undefined) return false;
  if (token.kind === "character") return token.character === character;
  if (token.kind !== "set") return token.kind === "one";
  const point = character.codePointAt(0) ?? 0;
  return token.ranges.some(([from, to]) => point >= from && point <= to) !== token.negated;
}

function compileName(name: string): (name: string) => boolean {
  const tokens = tokensOf(name);
  const literals = literalsOf(tokens);
  return literals === undefined ? (text) => matchName(tokens, text) : (text) => matchLiterals(literals, text);
}

/** The texts between the stars if the name has no other wildcards, which is the common case. */
function literalsOf(tokens: readonly Token[]): readonly string[] | undefined {
  const literals = [""];
  for (const token of tokens) {
    if (token.kind === "star") literals.push("");
    else if (token.kind === "character") literals.push((literals.pop() ?? "") + token.character);
    else return undefined;
  }
  return literals;
}

function matchLiterals(literals: readonly string[], name: string): boolean {
  const head = literals[0] ?? "";
  if (literals.length === 1) return name === head;
  const tail = literals.at(-1) ?? "";
  const end = name.length - tail.length;
  if (end < head.length || !name.startsWith(head) || !name.endsWith(tail)) return false;
  let at = head.length;
  for (const literal of literals.slice(1, -1)) {
    const found = name.indexOf(literal, at);
    if (found === -1) return false;
    at = found + literal.length;
  }
  return at <= end;
}

function tokensOf(name: string): readonly Token[] {
  const characters = Array.from(name);
  const tokens: Token[] = [];
  // If one bracket does not close, no later one does.
  let closing = true;
  for (let at = 0; at < characters.length; at += 1) {
    const character = characters[at] ?? "";
    if (character === "*") {
      if (tokens.at(-1)?.kind !== "star") tokens.push({ kind: "star" });
    } else if (character === "?") {
      tokens.push({ kind: "one" });
    } else if (character === "[") {
      const set: ReturnType<typeof compileSet> = closing ? compileSet(characters, at) : undefined;
      closing = set !== undefined;
      tokens.push(set?.token ?? { kind: "character", character });
      at = set?.end ?? at;
    } else {
      const quoted = character === "\\" && at + 1 < characters.length;
      if (quoted) at += 1;
      tokens.push({ kind: "character", character: characters[at] ?? "" });
    }
  }
  return tokens;
}

/** Compiles `[…]`; undefined if it does not close, which makes the bracket literal. */
function compileSet(characters: readonly string[], open: number): { token: Token; end: number } | undefined {
  let at = open + 1;
  const negated = characters[at] === "!" || characters[at] === "^";
  if (negated) at += 1;
  const points: { readonly point: number; readonly dash: boolean }[] = [];
  for (const first = at; at < characters.length; at += 1) {
    let character = characters[at] ?? "";
    if (character === "]" && at > first) return { token: { kind: "set", negated, ranges: rangesOf(points) }, end: at };
    const quoted = character === "\\" && at + 1 < characters.length;
    if (quoted) {
      at += 1;
      character = characters[at] ?? "";
    }
    points.push({ point: character.codePointAt(0) ?? 0, dash: character === "-" && !quoted });
  }
  return undefined;
}

function rangesOf(
  points: readonly { readonly point: number; readonly dash: boolean }[],
): readonly (readonly [number, number])[] {
  const ranges: [number, number][] = [];
  for (let at = 0; at < points.length; at += 1) {
    const from = points[at]?.point ?? 0;
    const to = points[at + 2];
    if (points[at + 1]?.dash === true && to !== undefined) {
      ranges.push([from, to.point]);
      at += 2;
    } else {
      ranges.push([from, from]);
    }
  }
  return ranges;
}

/** All patterns that the braces expand to; undefined if there are too many. */
function expandBraces(pattern: string): readonly string[] | undefined {
  const done: string[] = [];
  const open = [pattern];
  // Each round expands one pair of braces, so the work is bounded by the number of patterns times their length.
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const braces = findBraces(next);
    if (braces === undefined) {
      done.push(next);
    } else {
      const { start, end, choices } = braces;
      for (const choice of choices) open.push(next.slice(0, start) + choice + next.slice(end));
    }
    if (done.length + open.length > MAX_ALTERNATIVES) return undefined;
  }
  return done;
}

/** The first pair of braces that lists alternatives; other braces are literal. */
function findBraces(pattern: string): { start: number; end: number; choices: readonly string[] } | undefined {
  for (let start = 0; start < pattern.length; start += 1) {
    if (pattern[start] === "\\") {
      start += 1;
    } else if (pattern[start] === "{") {
      const found = choicesFrom(pattern, start);
      if (found !== undefined) return { start, ...found };
    }
  }
  return undefined;
}

function choicesFrom(pattern: string, start: number): { end: number; choices: readonly string[] } | undefined {
  const choices: string[] = [];
  let depth = 0;
  let from = start + 1;
  for (let at = start; at < pattern.length; at += 1) {
    const character = pattern[at];
    if (character === "\\") at += 1;
    else if (character === "{") depth += 1;
    else if (character === "," && depth === 1) {
      choices.push(pattern.slice(from, at));
      from = at + 1;
    } else if (character === "}" && --depth === 0) {
      const last = pattern.slice(from, at);
      if (choices.length > 0) return { end: at + 1, choices: [...choices, last] };
      const range = numberRange(last);
      return range === undefined ? undefined : { end: at + 1, choices: range };
    }
  }
  return undefined;
}

function numberRange(text: string): readonly string[] | undefined {
  const found = /^(\d{1,6})\.\.(\d{1,6})$/.exec(text);
  if (found === null) return undefined;
  const from = Number(found[1]);
  const to = Number(found[2]);
  const length = Math.min(Math.abs(to - from), MAX_ALTERNATIVES) + 1;
  return Array.from({ length }, (_, index) => String(from + (to > from ? index : -index)));
}
