import { lstatSync, readdirSync, readlinkSync, realpathSync } from "node:fs";
import { dirname, join, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";

/** Where links lead that stand for what every workspace protects by name: the gate sees real paths only. */
export function linkedPaths(root: string): readonly string[] {
  const settings = readdirSync(root).filter((name) => /^sluice\.config\./i.test(name));
  const names = [".git", ".sluice", join(".sluice", "pipelines"), ...settings];
  return names.flatMap((name) => targetsOf(join(root, name), 0));
}

/** Where Sluice itself is installed, with what it is made of: some of it is loaded only when it is needed, after runs have begun. */
export function ownCode(): readonly string[] {
  const here = realpathSync(fileURLToPath(import.meta.url));
  const names = here.split(sep);
  const installed = names.indexOf("node_modules");
  if (installed !== -1) return [names.slice(0, installed + 1).join(sep)];
  // A checkout: all its packages, and theirs.
  const packages = resolve(dirname(here), "../..");
  return [packages, join(dirname(packages), "node_modules")];
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
