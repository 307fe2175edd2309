import { accessSync, constants, lstatSync, readdirSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { contains } from "../files/paths.ts";
import { systemCode } from "../files/results.ts";
import { gitlinks, trackedFolders } from "./git-index.ts";
import { readSmallFile } from "./gitignore.ts";

/**
 * Keys under which a git command that only shows finds a program to run, another file to read or another place to look. Looked for
 * in any section: what begins one is not always what it looks like, and a needless question is no harm. What only other commands
 * run (aliases, editors, askpass, ssh) is left alone. `%G` in a format checks signatures.
 */
const RISKY_KEY =
  /(?<![a-z0-9-])(?:external|command|cmd|textconv|clean|smudge|process|driver|program|fsmonitor|pager|uploadpack|promisor|partialclone|alternaterefscommand|defaultkeycommand|worktree|[a-z]*file|submodule(?:summary)?)[ \t]*=|%[-+ ]?G/i;
/** Sections that name programs under any key, or other files of settings. */
const RISKY_SECTION = /\[\s*(?:include|includeif|pager|filter)(?![a-z0-9-])/i;
/** Submodules in submodules that are looked at. */
const MAX_DEPTH = 5;
/** Folders of a repository in which a link, as git follows it, leads to somebody else's. */
const OWN_FOLDERS = ["", "objects", "objects/info", "objects/pack", "refs", "refs/heads", "refs/remotes", "refs/tags"];

/** A repository at a place: its own folder, and the one that it shares with its other work trees. */
export interface Repository {
  readonly place: string;
  readonly folder: string;
  readonly shared: string;
}

/**
 * The top of the work tree that a folder lies in; or why git cannot be run there, a text that begins with "in": it could be made to
 * run a program, or to show what is not this repository's, by the repository's own settings, those of its submodules, and
 * where its folder leads.
 */
export function workTree(folder: string): { readonly top: string } | string {
  const device = lstatSync(folder).dev;
  for (let place = folder; ; place = dirname(place)) {
    if (basename(place) === ".git") return "in .git";
    // Git does not look for a repository on another disk: it then takes itself to be in none.
    if (lstatSync(place).dev !== device) return "in a folder that is another disk than its repository";
    if (exists(join(place, ".git")))
      return isRisky(place, 0)
        ? "in a repository whose own settings may name programs or other places"
        : { top: place };
    if (["HEAD", "objects", "refs"].every((name) => exists(join(place, name)))) return "in a bare repository";
    if (dirname(place) === place) return "in no repository";
  }
}

function isRisky(place: string, depth: number): boolean {
  const repository = repositoryAt(place);
  if (repository === undefined || depth > MAX_DEPTH || isRiskyRepository(repository)) return true;
  const { folder, shared } = repository;
  // What git does not take for a repository it passes by, for one further up.
  if (!isComplete(folder, shared)) return true;
  // Entries of a split index are in another file.
  if (namesIn(folder).some((name) => name.startsWith("sharedindex."))) return true;
  const links = gitlinks(join(folder, "index"), oidBytes(shared));
  if (links === undefined) return true;
  return links
    .map((path) => join(place, path))
    .some((inner) => exists(join(inner, ".git")) && isRisky(inner, depth + 1));
}

/**
 * The repositories in a work tree that git looks into from outside, since its index names them as submodules: their `.git`. The
 * index itself, where it cannot be read.
 */
export function namedRepositories(place: string): readonly string[] {
  const repository = repositoryAt(place);
  if (repository === undefined) return [];
  const index = join(repository.folder, "index");
  const links = gitlinks(index, oidBytes(repository.shared));
  return links === undefined ? [index] : links.map((path) => join(place, path, ".git")).filter(exists);
}

/** The length of object names. */
function oidBytes(shared: string): number {
  return /objectformat[ \t]*=[ \t]*sha256/i.test(readSmallFile(join(shared, "config")) ?? "") ? 32 : 20;
}

/** Folders of a work tree in which git keeps files, but which are links now: `git grep` follows them. */
export function linkedFolders(top: string): readonly string[] | undefined {
  const repository = repositoryAt(top);
  const folders = repository && trackedFolders(join(repository.folder, "index"), oidBytes(repository.shared));
  if (folders === undefined) return undefined;
  return [...folders].filter(
    (folder) => lstatSync(join(top, folder), { throwIfNoEntry: false })?.isSymbolicLink() === true,
  );
}

/** Undefined when `.git` leads to a repository that does not say in turn that it belongs here. */
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

/** The same test that git makes. */
function isComplete(folder: string, shared: string): boolean {
  const head = readSmallFile(join(folder, "HEAD")) ?? "";
  return (
    /^(?:ref:\s*refs\/|[0-9a-f]{40})/.test(head) && ["objects", "refs"].every((name) => mayEnter(join(shared, name)))
  );
}

function mayEnter(folder: string): boolean {
  try {
    accessSync(folder, constants.X_OK);
    return lstatSync(folder).isDirectory();
  } catch (thrown) {
    if (systemCode(thrown) === undefined) throw thrown;
    return false;
  }
}

/** Settings of a submodule name the work tree that it belongs to: said of this place, it is no other place to look. */
function withoutOwnTree(settings: string, folder: string, place: string): string {
  return settings.replace(/^[ \t]*worktree[ \t]*=[ \t]*(\S+)[ \t]*$/im, (line, path: string) =>
    resolve(folder, path) === place ? "" : line,
  );
}

/** Hooks may be links: none of them is run. */
function leadsElsewhere(folder: string): boolean {
  return OWN_FOLDERS.some((name) => namesIn(join(folder, name), "links").some((link) => link !== "hooks"));
}

function namesIn(folder: string, which?: "links"): readonly string[] {
  try {
    const entries = readdirSync(folder, { withFileTypes: true });
    return entries.filter((entry) => which === undefined || entry.isSymbolicLink()).map(({ name }) => name);
  } catch (thrown) {
    if (systemCode(thrown) === undefined) throw thrown;
    return [];
  }
}

function exists(path: string): boolean {
  try {
    lstatSync(path);
    return true;
  } catch (thrown) {
    if (systemCode(thrown) === undefined) throw thrown;
    return false;
  }
}
