import { createRequire } from "node:module";

// Loaded on demand: most patterns are plain names.
const require = createRequire(import.meta.url);

/** Bounds the matcher's backtracking. */
const MAX_STARS = 4;
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
  // picomatch interprets these even with options that disable the features.
  const escaped = piece.replace(/[()[\]|^$+@!"]/g, "\\$&");
  const picomatch: typeof import("picomatch") = require("picomatch/posix.js");
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
