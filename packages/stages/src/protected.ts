import { lstatSync, readdirSync, readlinkSync, realpathSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

/** Where links lead that stand for what every workspace protects by name: the gate sees real paths only. */
export function linkedPaths(root: string): readonly string[] {
  const settings = readdirSync(root).filter((name) => /^sluice\.config\./i.test(name));
  const names = [".git", ".sluice", join(".sluice", "pipelines"), ...settings];
  return names.flatMap((name) => targetsOf(join(root, name), 0));
}

/** Every step of a chain of links, since one that leads to nothing yet can be made to lead somewhere. */
function targetsOf(path: string, depth: number): readonly string[] {
  const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
  if (!isLink || depth > 40) return [];
  const target = resolve(realpathSync(dirname(path)), readlinkSync(path));
  return [target, ...realOf(target), ...targetsOf(target, depth + 1)];
}

function realOf(path: string): readonly string[] {
  try {
    return [realpathSync(path)];
  } catch {
    // Nothing is there yet: the path itself is what would be made.
    return [];
  }
}
