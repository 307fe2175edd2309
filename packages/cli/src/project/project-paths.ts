import { existsSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { type RunHost, SluiceError } from "@sluice/core";
import type { Environment } from "@sluice/tui/user";

/** The workspace of a command, and the folder that holds the journals. */
export interface ProjectPaths {
  /** Absolute, links resolved. */
  readonly cwd: string;
  readonly store: string;
  /** Whether the store is at its default location. */
  readonly usualStore: boolean;
}

export interface ProjectPathOptions {
  readonly cwd?: string;
  /** Relative to the current folder. */
  readonly store?: string | undefined;
}

/**
 * Resolves the workspace and the store from the current folder; `configured` is the config's store, absolute. Throws Session
 * `workspace_missing`.
 */
export function projectPathsOf(options: ProjectPathOptions, here: string, configured?: string): ProjectPaths {
  const cwd = workspaceOf(options, here);
  const usual = usualStore(cwd);
  const store = options.store === undefined ? (configured ?? usual) : resolve(here, options.store);
  return { cwd, store, usualStore: store === usual };
}

/** Where the journals of a workspace are if no one names another folder. */
export function usualStore(cwd: string): string {
  return join(cwd, ".sluice", "store");
}

/** The folder of --cwd, links resolved. Throws Session `workspace_missing`. */
export function workspaceOf(options: ProjectPathOptions, here: string): string {
  const path = resolve(here, options.cwd ?? ".");
  if (!existsSync(path))
    throw new SluiceError("Session", "workspace_missing", `there is no folder ${path}; name one with --cwd`);
  const real = realpathSync(path);
  if (!statSync(real).isDirectory())
    throw new SluiceError("Session", "workspace_missing", `${path} is not a folder; name one with --cwd`);
  return real;
}

/** A folder and its parents, up to the root. */
export function foldersAbove(folder: string): readonly string[] {
  const parent = dirname(folder);
  return parent === folder ? [folder] : [folder, ...foldersAbove(parent)];
}

/** Whether an absolute path is a folder or below it; links are not resolved. */
export function isWithin(path: string, folder: string): boolean {
  const below = relative(folder, path);
  return below !== ".." && !below.startsWith(`..${sep}`) && !isAbsolute(below);
}

/** A path with links resolved, also of a file that does not exist yet. */
export function realPath(path: string): string {
  if (existsSync(path)) return realpathSync(path);
  const parent = dirname(path);
  return parent === path ? path : join(realPath(parent), basename(path));
}

/** Returns a function that opens the store for writing, and creates it if it is missing. */
export async function storeOpener(place: ProjectPaths, adopt: boolean | undefined): Promise<() => RunHost> {
  const { sqliteHost } = await import("@sluice/sqlite");
  return () => sqliteHost(place.store, { adopt: adopt === true });
}

/** A shell command line that works from any folder. */
export function commandLine(words: readonly string[], place: ProjectPaths, here: string, env: Environment): string {
  const isHere = place.usualStore && place.cwd === realpathSync(here);
  const all = isHere ? words : [...words, "--store", place.store];
  return [...commandName(env), ...all].map(shellWord).join(" ");
}

/** The words that start the command: in a clone and in a project that installed it, npx finds it. */
export function commandName(env: Environment): readonly string[] {
  return ["exec", "start", "run-script"].includes(env.npm_command ?? "") ? ["npx", "sluice"] : ["sluice"];
}

/** Quotes a word for a shell. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
