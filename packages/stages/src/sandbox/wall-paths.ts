import { realpathSync } from "node:fs";
import { resolve } from "node:path";
import { contains } from "../tools/paths.ts";
import { systemCode } from "../tools/results.ts";

/** Where a path leads; undefined when it leads nowhere, or nowhere that this process can see. */
export function realPath(path: string): string | undefined {
  try {
    return realpathSync.native(path);
  } catch (thrown) {
    if (systemCode(thrown) === undefined) throw thrown;
    return undefined;
  }
}

/** The same as a list: nothing can be mounted over what is not there. */
export function existing(path: string): readonly string[] {
  const real = realPath(path);
  return real === undefined ? [] : [real];
}

/** A path of a folder, unless a link leads out of it. */
export function insideOf(root: string, path: string): readonly string[] {
  return existing(resolve(root, path)).filter((real) => contains(root, real));
}
