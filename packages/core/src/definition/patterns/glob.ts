/** Alternatives that the braces of one piece may stand for together. */
const MAX_ALTERNATIVES = 64;
/** The longest file name of common file systems. */
const MAX_INPUT = 255;

export type Glob = (text: string) => boolean;

/**
 * Compiles one piece without slashes: `*` matches any characters, `?` exactly one, `{a,b}` alternatives; every other character,
 * including brackets, parentheses and a leading dot, matches itself. Case-sensitive. Throws Error for unsupported syntax.
 */
export function compileGlob(piece: string): Glob {
  const fault = globFault(piece);
  if (fault !== undefined) throw new Error(fault);
  if (!/[*?{]/.test(piece)) return (text) => text === piece;
  const patterns = alternativesOf(piece);
  return (text) => text !== "" && text.length <= MAX_INPUT && patterns.some((pattern) => matches(pattern, text));
}

const BRACES = /\{[^{}]*\}/g;

function globFault(piece: string): string | undefined {
  if (piece.includes("\\")) return "a backslash is neither a separator nor an escape here";
  if (/[@+?*!]\(/.test(piece)) return "groups like @(a|b) or !(a) are not supported";
  if (piece.includes("**")) return "** stands for folders and must be a whole piece between slashes";
  const groups = piece.match(BRACES) ?? [];
  for (const braces of groups) {
    if (!braces.includes(",")) return `${braces} lists no alternatives; write {a,b}`;
    if (braces.includes("..")) return `ranges like ${braces} are not supported`;
  }
  if (/[{}]/.test(piece.replace(BRACES, ""))) return "braces are nested or do not close";
  const count = groups.reduce((product, braces) => product * braces.split(",").length, 1);
  return count > MAX_ALTERNATIVES ? `the braces stand for more than ${MAX_ALTERNATIVES} alternatives` : undefined;
}

/** The patterns without braces that a piece stands for. */
function alternativesOf(piece: string): readonly string[] {
  const [braces] = piece.match(BRACES) ?? [];
  if (braces === undefined) return [piece];
  const at = piece.indexOf(braces);
  const [before, after] = [piece.slice(0, at), piece.slice(at + braces.length)];
  return braces
    .slice(1, -1)
    .split(",")
    .flatMap((one) => alternativesOf(`${before}${one}${after}`));
}

/** Not a regular expression, since a pattern may come from a model. */
function matches(pattern: string, text: string): boolean {
  return matchWildcards(
    pattern.length,
    text.length,
    (at) => pattern[at] === "*",
    (at, index) => pattern[at] === "?" || pattern[at] === text[index],
  );
}

/** Matches a pattern with stars by backtracking to the last star only: at most pattern length × text length steps. */
export function matchWildcards(
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
