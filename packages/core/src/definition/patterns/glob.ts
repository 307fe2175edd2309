import picomatch from "picomatch/posix.js";

/** More stars in one piece would let a long name keep the matcher busy for seconds. */
const MAX_STARS = 4;
/** No file system has longer names, and no tool does. */
const MAX_INPUT = 255;

export type Glob = (text: string) => boolean;

/**
 * Compiles one piece without slashes: `*` is any run of characters, `?` exactly one, `{a,b}` alternatives; every other
 * character is itself, brackets, parentheses and a leading dot included. Case counts. Throws Error for what cannot be meant.
 */
export function compileGlob(piece: string): Glob {
  const fault = globFault(piece);
  if (fault !== undefined) throw new Error(fault);
  if (!/[*?{]/.test(piece)) return (text) => text === piece;
  // picomatch reads these as groups, classes, quotes or negation even where its options turn the feature off.
  const escaped = piece.replace(/[()[\]|^$+@!"]/g, "\\$&");
  const regex = picomatch.makeRe(escaped, { dot: true, strictSlashes: true, fastpaths: false, debug: true });
  return (text) => text.length <= MAX_INPUT && regex.test(text);
}

function globFault(piece: string): string | undefined {
  if (piece.includes("\\")) return "a backslash is neither a separator nor an escape here";
  if (/[@+?*!]\(/.test(piece)) return "groups like @(a|b) or !(a) are not supported";
  if (piece.includes("**")) return "** stands for folders and must be a whole piece between slashes";
  if ((piece.match(/\*/g)?.length ?? 0) > MAX_STARS) return `more than ${MAX_STARS} stars in one piece`;
  for (const braces of piece.match(/\{[^{}]*\}/g) ?? []) {
    if (!braces.includes(",")) return `${braces} lists no alternatives; write {a,b}`;
    if (braces.includes("..")) return `ranges like ${braces} are not supported`;
  }
  if (/[{}]/.test(piece.replace(/\{[^{}]*\}/g, ""))) return "braces are nested or do not close";
  return undefined;
}
