import { isAbsolute, relative, sep } from "node:path";

/** A path as rules see it: relative to the root, with `/` between folders, "" for the root. Undefined outside of it. */
export function insideRoot(root: string, real: string): string | undefined {
  const path = relative(root, real);
  if (path === ".." || path.startsWith(`..${sep}`) || isAbsolute(path)) return undefined;
  return sep === "/" ? path : path.replaceAll(sep, "/");
}

/** Whether a path is a folder or lies in it, on a filesystem that may not tell upper from lower case. */
export function lies(path: string, folder: string): boolean {
  return insideRoot(folded(folder), folded(path)) !== undefined;
}

/** Upper case first: it folds letters such as the long s, which some filesystems take for an s. */
export function folded(text: string): string {
  return text.toUpperCase().toLowerCase();
}
