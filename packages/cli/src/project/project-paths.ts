import { existsSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { type RunHost, SluiceError } from "@sluice/core";
import type { Environment } from "@sluice/tui/user";

/** Where a command works: the workspace of its runs, and the folder that holds their journals. */
export interface ProjectPaths {
  /** Absolute, links resolved. */
  readonly cwd: string;
  readonly store: string;
  /** Whether the store is where it is when nobody says otherwise. */
  readonly usualStore: boolean;
}

export interface ProjectPathOptions {
  readonly cwd?: string;
  readonly store?: string;
}

/** Where the journals are when --store does not say. */
export interface StoreSettings {
  /** SLUICE_STORE, from where the user stands. */
  readonly store?: string | undefined;
  /** The folder the project's config names. */
  readonly configured?: string | undefined;
}

/** Reads --cwd and --store, both from where the user stands. Throws Session `workspace_missing`. */
export function projectPathsOf(options: ProjectPathOptions, here: string, settings: StoreSettings = {}): ProjectPaths {
  const cwd = workspaceOf(options, here);
  const usual = join(cwd, ".sluice", "store");
  const named = options.store ?? settings.store;
  const store = named === undefined ? (settings.configured ?? usual) : resolve(here, named);
  return { cwd, store, usualStore: store === usual };
}

/** The folder --cwd names, links resolved. Throws Session `workspace_missing`. */
export function workspaceOf(options: ProjectPathOptions, here: string): string {
  return workspaceAt(resolve(here, options.cwd ?? "."));
}

/** A path with links resolved; what is not there yet is named by where it would be. */
export function realPath(path: string): string {
  if (existsSync(path)) return realpathSync(path);
  const parent = dirname(path);
  return parent === path ? path : join(realPath(parent), basename(path));
}

function workspaceAt(path: string): string {
  if (!existsSync(path))
    throw new SluiceError("Session", "workspace_missing", `there is no folder ${path}; name one with --cwd`);
  const real = realpathSync(path);
  if (!statSync(real).isDirectory())
    throw new SluiceError("Session", "workspace_missing", `${path} is not a folder; name one with --cwd`);
  return real;
}

/** Opens the store to look at it. Never makes one: Host `store_missing` says where it was looked for. */
export async function openToRead(place: ProjectPaths): Promise<RunHost> {
  const { sqliteHost } = await import("@sluice/sqlite");
  return sqliteHost(place.store, { readOnly: true });
}

/** How to open the store for writing, once it is needed; it is made when it is not there. */
export async function storeOpener(place: ProjectPaths, options: { readonly adopt: boolean }): Promise<() => RunHost> {
  const { sqliteHost } = await import("@sluice/sqlite");
  return () => sqliteHost(place.store, options);
}

/** A command line that means the same run from anywhere, ready to be pasted into a shell. */
export function commandLine(words: readonly string[], place: ProjectPaths, here: string, env: Environment): string {
  const fromHere = place.usualStore && place.cwd === realpathSync(here);
  const all = fromHere ? words : [...words, "--store", place.store];
  return [...commandName(env), ...all].map(shellWord).join(" ");
}

/** In a clone the command is not on the PATH, but npx finds it. */
function commandName(env: Environment): readonly string[] {
  return ["exec", "start", "run-script"].includes(env.npm_command ?? "") ? ["npx", "sluice"] : ["sluice"];
}

/** A word as a shell takes it for itself. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
