import { mkdirSync, rmdirSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { contains, realPath } from "../tools/files/paths.ts";
import { withFallback } from "../tools/files/results.ts";

/**
 * Creates mount points that exist only while a call needs them. The returned function creates the missing folders; what it
 * returns removes those that are empty and no longer needed.
 */
export function scratchFolders(): (root: string, paths: readonly string[]) => () => void {
  /** The number of calls that need each created folder. */
  const needed = new Map<string, number>();

  const need = (folder: string): readonly string[] => {
    const isCreated = needed.has(folder);
    if (!isCreated && realPath(folder) !== undefined) return [];
    const parents = need(dirname(folder));
    if (!isCreated) mkdirSync(folder);
    needed.set(folder, (needed.get(folder) ?? 0) + 1);
    return [...parents, folder];
  };

  return (root, paths) => {
    const inside = paths.map((path) => resolve(root, path)).filter((path) => contains(root, path));
    const held = inside.filter((path) => leadsInside(path, root)).flatMap((path) => need(path));
    return () => {
      for (const folder of held.toReversed()) {
        const left = (needed.get(folder) ?? 1) - 1;
        if (left > 0) needed.set(folder, left);
        else needed.delete(folder);
        // Removed only if it is empty; it may also be gone already.
        if (left === 0) withFallback(() => rmdirSync(folder), undefined);
      }
    };
  };
}

/** Whether the nearest existing folder is inside: it may be a link to elsewhere. */
function leadsInside(path: string, root: string): boolean {
  for (let at = path; ; at = dirname(at)) {
    const real = realPath(at);
    if (real !== undefined) return contains(root, real);
    if (at === root) return false;
  }
}
