import { mkdirSync, rmdirSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { contains, realPath } from "../tools/files/paths.ts";
import { systemCode } from "../tools/files/results.ts";

/** Folders that are there as long as a call needs them, for something to be mounted on. */
export interface ScratchFolders {
  /** Makes those that are missing; the returned function removes them again, if they are empty and nobody else needs them. */
  hold(root: string, paths: readonly string[]): () => void;
}

export function scratchFolders(): ScratchFolders {
  /** How many calls need each folder that was made here. */
  const needed = new Map<string, number>();

  const need = (folder: string): readonly string[] => {
    const isOurs = needed.has(folder);
    if (!isOurs && realPath(folder) !== undefined) return [];
    const parents = need(dirname(folder));
    if (!isOurs) mkdirSync(folder);
    needed.set(folder, (needed.get(folder) ?? 0) + 1);
    return [...parents, folder];
  };

  return {
    hold: (root, paths) => {
      const inside = paths.map((path) => resolve(root, path)).filter((path) => contains(root, path));
      const held = inside.filter((path) => leadsInside(path, root)).flatMap((path) => need(path));
      return () => {
        for (const folder of held.toReversed()) {
          const left = (needed.get(folder) ?? 1) - 1;
          if (left > 0) needed.set(folder, left);
          else needed.delete(folder);
          if (left === 0) removeIfEmpty(folder);
        }
      };
    },
  };
}

/** The nearest folder that exists may be a link to elsewhere. */
function leadsInside(path: string, root: string): boolean {
  for (let at = path; ; at = dirname(at)) {
    const real = realPath(at);
    if (real !== undefined) return contains(root, real);
    if (at === root) return false;
  }
}

function removeIfEmpty(folder: string): void {
  try {
    rmdirSync(folder);
  } catch (thrown) {
    // Something was put into it meanwhile, or it is gone: both are fine.
    if (systemCode(thrown) === undefined) throw thrown;
  }
}
