import { accessSync, constants, lstatSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { isSluiceError } from "@sluice/core";
import { certain } from "../files/closed-folders.ts";
import { contains, entriesIn, exists } from "../files/paths.ts";
import { withFallback } from "../files/results.ts";
import { gitlinks, trackedFolders } from "./git-index.ts";
import { readSmallFile } from "./gitignore.ts";

/**
 * Settings with which a read-only git command may start a program or read elsewhere. They are matched in any section, since
 * section headers can be disguised. Settings that only other commands use (aliases, editors, askpass, ssh) are allowed. `%G`
 * in a format verifies signatures.
 */
const RISKY_KEY =
  /(?<![a-z0-9-])(?:external|command|cmd|textconv|clean|smudge|process|driver|program|fsmonitor|pager|uploadpack|promisor|partialclone|alternaterefscommand|defaultkeycommand|worktree|[a-z]*file|submodule(?:summary)?)[ \t]*=|%[-+ ]?G/i;
/** Sections that name programs under any key, or include other settings. */
const RISKY_SECTION = /\[\s*(?:include|includeif|pager|filter)(?![a-z0-9-])/i;
/** Nested submodules that are checked. */
const MAX_DEPTH = 5;
/** Folders of a repository in which git follows links. */
const OWN_FOLDERS = ["", "objects", "objects/info", "objects/pack", "refs", "refs/heads", "refs/remotes", "refs/tags"];

/** A repository: its work tree, its own folder, and the one that it shares with other work trees. */
export interface Repository {
  readonly place: string;
  readonly folder: string;
  readonly shared: string;
}

/**
 * The top of the work tree around a folder; or why git is unsafe there, as a text that begins with "in": settings of the
 * repository or its submodules may start programs, or its folders lead elsewhere.
 */
export function workTree(folder: string): { readonly top: string } | string {
  const device = lstatSync(folder).dev;
  for (let place = folder; ; place = dirname(place)) {
    if (basename(place) === ".git") return "in .git";
    // Git does not search for a repository across file systems.
    if (lstatSync(place).dev !== device) return "in a folder on another file system than its repository";
    if (exists(join(place, ".git")))
      return isRisky(place, 0)
        ? "in a repository whose own settings may start programs or read elsewhere"
        : { top: place };
    if (["HEAD", "objects", "refs"].every((name) => exists(join(place, name)))) return "in a bare repository";
    if (dirname(place) === place) return "in no repository";
  }
}

function isRisky(place: string, depth: number): boolean {
  const repository = repositoryAt(place);
  if (repository === undefined || depth > MAX_DEPTH || isRiskyRepository(repository)) return true;
  const { folder, shared } = repository;
  // Git skips an incomplete repository and uses one further up.
  if (!isComplete(folder, shared)) return true;
  // A split index keeps entries in another file.
  if (entriesIn(folder).some(({ name }) => name.startsWith("sharedindex."))) return true;
  return submodules(repository, [])?.some((git) => isRisky(dirname(git), depth + 1)) !== false;
}

/** The `.git` of each submodule that the index names, since git visits them; undefined if that is not certain. A command may write the areas. */
export function namedRepositories(place: string, areas: readonly string[]): readonly string[] | undefined {
  const repository = repositoryAt(place);
  return repository === undefined ? [] : submodules(repository, areas);
}

/** The `.git` of each submodule. Undefined if the index cannot be read, or if one of them cannot be examined. */
function submodules({ place, folder, shared }: Repository, areas: readonly string[]): readonly string[] | undefined {
  const links = gitlinks(join(folder, "index"), oidBytes(shared));
  const isThere = (git: string): boolean => certain(git, areas, (path) => lstatSync(path)) !== undefined;
  try {
    return links?.map((path) => join(place, path, ".git")).filter(isThere);
  } catch (thrown) {
    // Git may reach by a shorter path what has a path that is too long here.
    if (isSluiceError(thrown, "sandbox_failed")) return undefined;
    throw thrown;
  }
}

/** The length of object names in bytes. */
function oidBytes(shared: string): number {
  return /objectformat[ \t]*=[ \t]*sha256/i.test(readSmallFile(join(shared, "config")) ?? "") ? 32 : 20;
}

function trackedIn(top: string): ReadonlySet<string> | undefined {
  const repository = repositoryAt(top);
  return repository && trackedFolders(join(repository.folder, "index"), oidBytes(repository.shared));
}

/** Whether files of a folder are tracked, which is relative to the top; also if that is not certain. */
export function isTracked(top: string, folder: string): boolean {
  return trackedIn(top)?.has(folder) !== false;
}

/** Tracked folders that have been replaced by links: `git grep` follows them. */
export function linkedFolders(top: string): readonly string[] | undefined {
  const folders = trackedIn(top);
  if (folders === undefined) return undefined;
  return [...folders].filter(
    (folder) => lstatSync(join(top, folder), { throwIfNoEntry: false })?.isSymbolicLink() === true,
  );
}

/** More folders take too long to list. */
const MOST_FOLDERS = 20_000;

/**
 * What else there is in the folders of a work tree that have tracked files: links, and folders without tracked files. Relative to
 * its top; undefined if that is not certain.
 */
export function entriesBeside(
  top: string,
): { readonly links: readonly string[]; readonly folders: readonly string[] } | undefined {
  const tracked = trackedIn(top);
  if (tracked === undefined || tracked.size > MOST_FOLDERS) return undefined;
  const links: string[] = [];
  const folders: string[] = [];
  const pending = [""];
  for (let folder = pending.pop(); folder !== undefined; folder = pending.pop()) {
    for (const entry of entriesIn(join(top, folder))) {
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (entry.isSymbolicLink()) links.push(path);
      else if (entry.isDirectory()) (tracked.has(path) ? pending : folders).push(path);
    }
  }
  return [...links, ...folders].every(isSpelledAlike) ? { links, folders } : undefined;
}

/** Whether git has the same bytes for a name as this process. */
function isSpelledAlike(path: string): boolean {
  return !path.includes("\uFFFD") && (process.platform !== "darwin" || /^[ -~]*$/.test(path));
}

/** Undefined if `.git` names a repository that does not name this work tree in turn. */
export function repositoryAt(place: string): Repository | undefined {
  const git = join(place, ".git");
  const stats = lstatSync(git);
  if (stats.isDirectory()) return exists(join(git, "commondir")) ? undefined : { place, folder: git, shared: git };
  if (!stats.isFile()) return undefined;
  const target = /^gitdir: (\S|\S[^\r\n]*\S)[\r\n]*$/.exec(readSmallFile(git) ?? "")?.[1];
  if (target === undefined) return undefined;
  const folder = resolve(place, target);
  const common = readSmallFile(join(folder, "commondir"));
  if (common === undefined) {
    const text = readSmallFile(join(folder, "config")) ?? "";
    return withoutOwnTree(text, folder, place) === text ? undefined : { place, folder, shared: folder };
  }
  if (!/^\S[^\r\n]*\n?$/.test(common) || /[ \t]\n?$/.test(common)) return undefined;
  const shared = resolve(folder, common.trimEnd());
  const back = readSmallFile(join(folder, "gitdir"));
  const linked = back !== undefined && resolve(folder, back.trim()) === git;
  return linked && contains(join(shared, "worktrees"), folder) ? { place, folder, shared } : undefined;
}

function isRiskyRepository({ place, folder, shared }: Repository): boolean {
  const settings = [join(shared, "config"), join(shared, "config.worktree"), join(folder, "config.worktree")];
  const risky = settings.some((file) => {
    const text = readSmallFile(file);
    if (text === undefined) return exists(file);
    const other = withoutOwnTree(text, folder, place);
    return RISKY_KEY.test(other) || RISKY_SECTION.test(other);
  });
  return risky || exists(join(shared, "objects/info/alternates")) || leadsElsewhere(shared) || leadsElsewhere(folder);
}

/** Git's own test for a repository. */
function isComplete(folder: string, shared: string): boolean {
  const head = readSmallFile(join(folder, "HEAD")) ?? "";
  return (
    /^(?:ref:\s*refs\/|[0-9a-f]{40})/.test(head) && ["objects", "refs"].every((name) => mayEnter(join(shared, name)))
  );
}

function mayEnter(folder: string): boolean {
  return withFallback(() => {
    accessSync(folder, constants.X_OK);
    return lstatSync(folder).isDirectory();
  }, false);
}

/** Removes a submodule's `worktree` setting if it names this work tree. */
function withoutOwnTree(settings: string, folder: string, place: string): string {
  return settings.replace(/^[ \t]*worktree[ \t]*=[ \t]*(\S+)[ \t]*$/im, (line, path: string) =>
    resolve(folder, path) === place ? "" : line,
  );
}

/** Whether a folder of the repository contains links. A link `hooks` is harmless: no hook runs. */
function leadsElsewhere(folder: string): boolean {
  const hasLink = (name: string): boolean =>
    entriesIn(join(folder, name)).some((entry) => entry.isSymbolicLink() && entry.name !== "hooks");
  return OWN_FOLDERS.some(hasLink);
}
