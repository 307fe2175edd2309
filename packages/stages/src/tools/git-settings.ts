import { lstatSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { readSmallFile } from "./gitignore.ts";
import { systemCode } from "./results.ts";

/**
 * Keys under which git finds a program to run, or another place to read. Looked for in any section: what begins one is
 * not always what it looks like, and a needless question is no harm.
 */
const RISKY_KEY =
  /(?<![a-z0-9-])(?:external|command|cmd|textconv|clean|smudge|process|program|fsmonitor|pager|sshcommand|askpass|editor|gitproxy|uploadpack|receivepack|vcs|promisor|partialclone|alternaterefscommand|helper|defaultkeycommand|worktree)[ \t]*=/i;
/** Sections that name programs under any key, or other files of settings. */
const RISKY_SECTION = /\[\s*(?:alias|include|includeif|pager|filter|interactive|credential)(?![a-z0-9-])/i;

/** Whether git, run at this place, could be made to run a program or look elsewhere by the repository's own settings. */
export function riskyGitSettings(root: string): boolean {
  const folder = gitFolder(root);
  if (folder === undefined) return false;
  const common = readSmallFile(join(folder, "commondir"));
  const shared = common === undefined ? folder : resolve(folder, common.trim());
  return [join(shared, "config"), join(shared, "config.worktree"), join(folder, "config.worktree")].some(isRisky);
}

function isRisky(file: string): boolean {
  const text = readSmallFile(file);
  if (text === undefined) return exists(file);
  return RISKY_KEY.test(text) || RISKY_SECTION.test(text);
}

/** As git looks for it: upwards, and a folder that is shaped like a repository is one. */
function gitFolder(root: string): string | undefined {
  for (let place = root; ; place = dirname(place)) {
    const git = join(place, ".git");
    if (exists(git)) {
      const link = /^gitdir:[ \t]*(.+)/.exec(readSmallFile(git) ?? "")?.[1];
      return link === undefined ? git : resolve(place, link.trimEnd());
    }
    if (["HEAD", "objects", "refs"].every((name) => exists(join(place, name)))) return place;
    if (dirname(place) === place) return undefined;
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
