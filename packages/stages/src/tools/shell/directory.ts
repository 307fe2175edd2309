import type { ShellWord } from "./word.ts";

/** Folders a command may find itself in, relative to where the line starts ("" is there); `null` is anywhere. */
export type Directories = readonly (string | null)[];

export const START: Directories = [""];
export const ANYWHERE: Directories = [null];
const MAX_DIRECTORIES = 8;

/** Where the shell may be after a command, by how it ended. */
export interface Flow {
  readonly ok: Directories;
  readonly fail: Directories;
}

export function stay(directories: Directories): Flow {
  return { ok: directories, fail: directories };
}

export function union(a: Directories, b: Directories): Directories {
  const all = [...new Set([...a, ...b])];
  return all.length > MAX_DIRECTORIES ? ANYWHERE : all;
}

export function after(flow: Flow): Directories {
  return union(flow.ok, flow.fail);
}

export function sameDirectories(a: Directories, b: Directories): boolean {
  return a.length === b.length && a.every((directory) => b.includes(directory));
}

/** A path as it reads from the start of the line. Nothing is normalised: with links, `a/..` need not be here. */
export function join(directory: string, path: string): string {
  if (directory === "" || path.startsWith("/")) return path;
  if (path === ".") return directory;
  return directory.endsWith("/") ? directory + path : `${directory}/${path}`;
}

/** Whether a path climbs out of a folder that was entered by name, which links make unpredictable. */
export function climbsBack(directory: string, path: string): boolean {
  return directory !== "" && !path.startsWith("/") && path.split("/").includes("..");
}

/** The one folder `cd` names, or undefined when the text does not tell. `root` is where the line starts. */
export function cdTarget(words: readonly ShellWord[], root: string | undefined): string | undefined {
  const operands = words[1]?.text === "--" && !words[1].dynamic ? words.slice(2) : words.slice(1);
  const target = operands[0];
  if (operands.length !== 1 || target === undefined || target.dynamic) return undefined;
  // `cd ""` stays, `cd -` goes back, options change how links are followed.
  if (target.text === "" || target.text.startsWith("-")) return undefined;
  const names = target.text.split("/");
  if (names.some((name, index) => name === ".." && names.slice(0, index).some((before) => before !== "..")))
    return undefined;
  const bareTarget = target.text.replace(/\/+$/, "");
  return root !== undefined && bareTarget === root.replace(/\/+$/, "") ? "" : target.text;
}

/** Where `cd target` leads. */
export function enter(directories: Directories, target: string): Directories {
  return directories.map((directory) => {
    if (target === "" || target.startsWith("/")) return target;
    if (directory === null || climbsBack(directory, target)) return null;
    if (target === ".") return directory;
    return join(directory, target);
  });
}
