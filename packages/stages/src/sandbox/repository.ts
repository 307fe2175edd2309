import { existsSync, lstatSync, readdirSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { contains, existing } from "../tools/files/paths.ts";
import { fault, systemCode } from "../tools/files/results.ts";
import { type Repository, repositoryAt } from "../tools/search/git-settings.ts";
import { readSmallFile } from "../tools/search/gitignore.ts";

/** What of a repository's own folder says what git runs, or where else it looks. */
const CODE = ["hooks", "config", "config.worktree", "info", "modules", "commondir", "objects/info/alternates"];
/** The same of the folder that a work tree has in its repository. */
const TREE_CODE = ["commondir", "gitdir", "config.worktree"];

/** Settings that name programs, or files with more settings. */
const NAMES_A_PROGRAM =
  /^[ \t]*(?:hookspath|path|fsmonitor|sshcommand|gitproxy|editor|pager|askpass|textconv|command|cmd|clean|smudge|process|driver|helper|program)[ \t]*=[ \t]*(.*)$/gim;

/** The repository of a workspace, as a wall has to know it. */
export interface SandboxedRepository {
  /** Folders of it, and the file that leads there, that lie outside of the workspace. */
  readonly outside: readonly string[];
  /** Whether the workspace is all of the work tree: only then is the repository written. */
  readonly whole: boolean;
  /** What is there and is never to be written: git would obey it. */
  readonly fixed: readonly string[];
  /** What its settings name as programs or hooks and is not there: whatever comes to be there, git would obey. */
  readonly awaited: readonly string[];
  /** The top of its work tree. */
  readonly place: string;
  /** Its own folder, and the one that it shares with its other work trees. */
  readonly folders: readonly string[];
}

/** Paths of a repository at which git obeys what is there, whether something is or not. */
export function obeyedPaths(folders: readonly string[]): readonly string[] {
  const trees = folders.flatMap((folder) => {
    const parent = join(folder, "worktrees");
    return namesIn(parent).map((name) => join(parent, name));
  });
  return [
    ...folders.flatMap((folder) => CODE.map((name) => join(folder, name))),
    ...trees.flatMap((tree) => TREE_CODE.map((name) => join(tree, name))),
  ];
}

/** Undefined where there is none, and where `.git` leads to one that does not say in turn that it belongs here. */
export function sandboxedRepository(root: string, home: string | undefined): SandboxedRepository | undefined {
  const place = placeOf(root, home);
  const repository = place === undefined ? undefined : repositoryAt(place);
  if (place === undefined) return undefined;
  const link = join(place, ".git");
  const isFile = lstatSync(link).isFile();
  if (repository === undefined)
    return { outside: [], whole: false, fixed: isFile ? [link] : [], awaited: [], place, folders: [] };
  const folders = [...new Set([repository.shared, repository.folder])];
  return {
    outside: [...folders, ...(isFile ? [link] : [])].filter((path) => !contains(root, path)),
    whole: place === root,
    fixed: [...obeyedPaths(folders), ...(isFile ? [link] : []), ...programs(repository, root)].flatMap(existing),
    awaited: programs(repository, root).filter((path) => !existsSync(path)),
    place,
    folders,
  };
}

/** A folder above the home folder is nobody's work tree, and the home folder's own is nobody's business. */
function placeOf(root: string, home: string | undefined): string | undefined {
  for (let place = root; ; place = dirname(place)) {
    if (place !== root && (place === dirname(place) || (home !== undefined && contains(place, home)))) return undefined;
    const stats = lstatSync(join(place, ".git"), { throwIfNoEntry: false });
    if (stats?.isSymbolicLink() === true && place === root)
      throw fault("wall_failed", "The workspace's .git is a link. No wall can guard it, so nothing was run.");
    if (stats !== undefined) return stats.isSymbolicLink() ? undefined : place;
    if (place === dirname(place)) return undefined;
  }
}

/** Files and folders of the workspace that the settings name as programs, hooks or further settings. */
function programs({ shared, folder }: Repository, root: string): readonly string[] {
  const files = [join(shared, "config"), join(folder, "config.worktree")];
  const named = files.flatMap((file) =>
    [...(readSmallFile(file) ?? "").matchAll(NAMES_A_PROGRAM)].flatMap(([line, value = ""]) =>
      value
        .split(/[\s"'=;|&]+/)
        .flatMap((word) => [resolve(root, word), resolve(dirname(file), word)])
        // A bare name is a program of PATH, unless there is such a file.
        .filter((path) => /^\s*hookspath/i.test(line) || value.includes("/") || existsSync(path)),
    ),
  );
  return (
    named
      // Husky's folder of hooks calls those beside it.
      .map((path) => (basename(path) === "_" ? dirname(path) : path))
      .filter((path) => contains(root, path) && path !== root && path !== shared)
  );
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (thrown) {
    if (systemCode(thrown) === undefined) throw thrown;
    return [];
  }
}
