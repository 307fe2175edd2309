import { existsSync, lstatSync, readdirSync } from "node:fs";
import { basename, dirname, join, resolve, sep } from "node:path";
import { certain, certainPath } from "../tools/files/closed-folders.ts";
import { contains, linksOn, resolveReal } from "../tools/files/paths.ts";
import { fault } from "../tools/files/results.ts";
import { namedRepositories, type Repository, repositoryAt } from "../tools/search/git-settings.ts";
import { readSmallFile } from "../tools/search/gitignore.ts";
import { type Mark, markAt } from "./folder-marks.ts";

/** Paths of a repository that decide what git runs and where it looks. */
const CODE = ["hooks", "config", "config.worktree", "info", "modules", "commondir", "objects/info/alternates"];
/** The same in the folder of a linked work tree. */
const TREE_CODE = ["commondir", "gitdir", "config.worktree", "modules"];

/** Settings that name programs or further settings files. */
const NAMES_A_PROGRAM =
  /^[ \t]*(?:hookspath|path|fsmonitor|sshcommand|gitproxy|editor|pager|askpass|textconv|command|cmd|clean|smudge|process|driver|helper|program)[ \t]*=[ \t]*(.*)$/gim;

/** The repository of a workspace, as the wall protects it. */
export interface SandboxedRepository {
  /** Its folders and `.git` file outside the workspace. */
  readonly outside: readonly string[];
  /** Whether the workspace is the whole work tree; otherwise the repository is read-only. */
  readonly whole: boolean;
  /** Existing paths that git obeys; always read-only. */
  readonly fixed: readonly string[];
  /** Missing paths that the settings name as programs or hooks; git would obey them once they exist. */
  readonly awaited: readonly string[];
  /** Top of the work tree. */
  readonly place: string;
  /** The folder that it shares with other work trees, if it has one, and last its own. */
  readonly folders: readonly string[];
}

/**
 * Paths of a repository at which git obeys what is there, whether something is or not. A command may write the areas. Throws
 * `sandbox_failed` if a folder cannot be read.
 */
export function obeyedPaths(folders: readonly string[], areas: readonly string[]): readonly string[] {
  const parents = folders.map((folder) => join(folder, "worktrees"));
  const isElsewhere = (parent: string): boolean => certain(parent, areas, isRealFolder) === false;
  return [...codePaths(folders, areas), ...parents.filter(isElsewhere)];
}

/** Those at which git looks for settings and programs. A link in the place of the folder of all work trees is never followed. */
function codePaths(folders: readonly string[], areas: readonly string[]): readonly string[] {
  const trees = folders.flatMap((folder) => {
    const parent = join(folder, "worktrees");
    const names = certain(parent, areas, (place) => (isRealFolder(place) ? readdirSync(place) : []));
    return (names ?? []).map((name) => join(parent, name));
  });
  // Git writes the index of its own work tree, which is read after each command instead.
  const others = [...folders, ...trees].filter((folder) => folder !== folders.at(-1));
  return [
    ...folders.flatMap((folder) => CODE.map((name) => join(folder, name))),
    ...trees.flatMap((tree) => TREE_CODE.map((name) => join(tree, name))),
    ...others.map((folder) => join(folder, "index")),
  ];
}

/** The repositories that the index names, where they lie: git is led there by links too. A command may write the areas. */
export function namedMarks(place: string, areas: readonly string[]): readonly Mark[] {
  return (namedRepositories(place, areas) ?? []).flatMap((path) => markAt(path, areas));
}

/** The index, if what it names is not certain. */
export function unreadIndex(
  { place, folders }: Pick<SandboxedRepository, "place" | "folders">,
  areas: readonly string[],
): readonly string[] {
  const own = namedRepositories(place, areas) === undefined ? folders.at(-1) : undefined;
  return own === undefined ? [] : [join(own, "index")];
}

function isRealFolder(path: string): boolean {
  return lstatSync(path).isDirectory();
}

/** Undefined without a repository. One whose `.git` is not confirmed by the folder it names has no folders here, and is fixed. */
export function sandboxedRepository(root: string, home: string | undefined): SandboxedRepository | undefined {
  const place = workTreeOf(root, home);
  // A command may close the folder of the repository.
  if (place === root) certainPath(join(root, ".git", "config"), [root]);
  const repository = place === undefined ? undefined : repositoryAt(place);
  if (place === undefined) return undefined;
  const link = join(place, ".git");
  const isFile = lstatSync(link).isFile();
  // All of it: nothing says which part of it git obeys.
  if (repository === undefined) return { outside: [], whole: false, fixed: [link], awaited: [], place, folders: [] };
  const folders = [...new Set([repository.shared, repository.folder])];
  const areas = [root, ...(place === root ? folders : [])];
  const there = (path: string): readonly string[] => certainPath(path, areas);
  const named = programs(repository, root, home);
  return {
    outside: [...folders, ...(isFile ? [link] : [])].filter((path) => !contains(root, path)),
    whole: place === root,
    fixed: [...codePaths(folders, areas), ...(isFile ? [link] : []), ...named].flatMap(there),
    // Where a link of the user leads, a command can make what the settings name without changing the link.
    awaited: named.filter((path) => there(path).length === 0).flatMap((path) => [path, ...realWithin([root], path)]),
    place,
    folders,
  };
}

/** The path behind all links, if it is not the same and in one of the areas. Nothing has to be there. */
export function realWithin(areas: readonly string[], path: string): readonly string[] {
  const resolution = resolveReal(path, sep);
  if (!resolution.ok || resolution.real === path) return [];
  return areas.some((area) => contains(area, resolution.real)) ? [resolution.real] : [];
}

/** Paths, with the links on their way in the areas: one that a command makes there is as bad as what it leads to. */
export function withLinks(paths: readonly string[], areas: readonly string[]): readonly string[] {
  const links = paths.flatMap(linksOn).filter((link) => areas.some((area) => contains(area, link)));
  return [...paths, ...links];
}

/** The nearest work tree, not looked for at or above the home folder. */
function workTreeOf(root: string, home: string | undefined): string | undefined {
  for (let place = root; ; place = dirname(place)) {
    if (place !== root && (place === dirname(place) || (home !== undefined && contains(place, home)))) return undefined;
    const stats = lstatSync(join(place, ".git"), { throwIfNoEntry: false });
    if (stats?.isSymbolicLink() === true && place === root)
      throw fault("sandbox_failed", "The workspace's .git is a link, which a sandbox cannot protect. Nothing was run.");
    if (stats !== undefined) return stats.isSymbolicLink() ? undefined : place;
    if (place === dirname(place)) return undefined;
  }
}

/** Files and folders of the workspace that git's settings name as programs, hooks or further settings. */
function programs({ place, shared, folder }: Repository, root: string, home = "~"): readonly string[] {
  const files = [join(shared, "config"), join(folder, "config.worktree")];
  const named = files.flatMap((file) =>
    [...(readSmallFile(file) ?? "").matchAll(NAMES_A_PROGRAM)].flatMap(([line, value = ""]) =>
      value
        .split(/[\s"'=;|&]+/)
        .map((word) => word.replace(/^~(?=\/)/, () => home))
        .flatMap((word) => [root, place, dirname(file)].map((from) => resolve(from, word)))
        // A bare name is a program on PATH, unless such a file exists.
        .filter((path) => /^\s*hookspath/i.test(line) || value.includes("/") || existsSync(path)),
    ),
  );
  return (
    named
      // The hooks in Husky's `_` folder call those beside it.
      .map((path) => (basename(path) === "_" ? dirname(path) : path))
      .filter((path) => contains(root, path) && path !== root && path !== shared)
  );
}
