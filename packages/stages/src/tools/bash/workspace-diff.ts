import { type BigIntStats, lstatSync, readdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { type Clock, isSluiceError, type Workspace } from "@sluice/core";
import { readUpTo, withFile } from "../files/open.ts";
import { systemCode } from "../files/results.ts";
import { MAX_FILE_BYTES, sha256 } from "../files/text.ts";
import { readSmallFile, repositoryTop } from "../search/gitignore.ts";
import { walk } from "../search/walk.ts";

const MAX_ENTRIES = 100_000;
const MAX_GIT_ENTRIES = 20_000;
/** A file that changed this shortly ago may change again within one tick of the file system's clock. */
const RECENT_MS = 2_000;
const MAX_HASHED_FILES = 1_000;
/** What in a repository's own folder a command that only reads leaves alone. */
const GIT_ENTRIES = ["HEAD", "config", "packed-refs", "refs", "hooks", "info"];

/** What a workspace looked like, to be held against what it looks like later. */
export interface WorkspaceWatch {
  changes(signal: AbortSignal): Promise<WorkspaceChanges>;
}
export interface WorkspaceChanges {
  /** Paths relative to the workspace, in order. */
  readonly files: readonly { readonly path: string; readonly how: "created" | "changed" | "removed" }[];
  /** False when the workspace holds more than is compared. */
  readonly complete: boolean;
}

interface Entry {
  readonly path: string;
  /** Everything about it that a write changes. */
  readonly mark: string;
  readonly recent: boolean;
}

/** Looks at every file that git does not ignore, and at the repository's refs, hooks and settings. Runs no program. */
export async function watchWorkspace(workspace: Workspace, clock: Clock, signal: AbortSignal): Promise<WorkspaceWatch> {
  const before = await survey(workspace, clock.now() - RECENT_MS, signal);
  const hashes = new Map<string, string>();
  for (const [name, entry] of before.entries) {
    if (!entry.recent || hashes.size >= MAX_HASHED_FILES) continue;
    const hash = await hashOf(entry.path, signal);
    if (hash !== undefined) hashes.set(name, hash);
  }
  return {
    async changes(later) {
      const after = await survey(workspace, clock.now(), later);
      const files: WorkspaceChanges["files"][number][] = [];
      for (const [name, entry] of after.entries) {
        const old = before.entries.get(name);
        if (old === undefined) files.push({ path: name, how: "created" });
        else if (old.mark !== entry.mark) files.push({ path: name, how: "changed" });
        else if (hashes.has(name) && (await hashOf(entry.path, later)) !== hashes.get(name))
          files.push({ path: name, how: "changed" });
      }
      for (const name of before.entries.keys())
        if (!after.entries.has(name)) files.push({ path: name, how: "removed" });
      files.sort((a, b) => (a.path < b.path ? -1 : 1));
      return { files, complete: before.complete && after.complete };
    },
  };
}

async function survey(
  workspace: Workspace,
  recentFrom: number,
  signal: AbortSignal,
): Promise<{ entries: ReadonlyMap<string, Entry>; complete: boolean }> {
  const entries = new Map<string, Entry>();
  let complete = true;
  const found = walk({
    workspace,
    start: workspace.root,
    nodeModules: true,
    signal,
    unreadable: () => (complete = false),
  });
  for await (const { path, names, kind } of found) {
    if (entries.size >= MAX_ENTRIES) {
      complete = false;
      break;
    }
    add(entries, names.join("/"), path, kind === "folder", recentFrom);
  }
  return { entries, complete: surveyGit(workspace.root, entries, recentFrom) && complete };
}

function add(entries: Map<string, Entry>, name: string, path: string, isFolder: boolean, recentFrom: number): void {
  // A folder's times change when a temporary file comes and goes in it; that it is there is all that counts.
  if (isFolder) {
    entries.set(name, { path, mark: "folder", recent: false });
    return;
  }
  const stats = look(path);
  if (stats === undefined) return;
  const { size, mtimeNs, ctimeNs, ino, mode } = stats;
  const recent = stats.isFile() && Number(stats.ctimeMs) >= recentFrom;
  entries.set(name, { path, mark: [size, mtimeNs, ctimeNs, ino, mode].join(" "), recent });
}

/** Returns whether all of it was seen. */
function surveyGit(root: string, entries: Map<string, Entry>, recentFrom: number): boolean {
  const pending = gitFolders(root).flatMap((folder, index) =>
    GIT_ENTRIES.map((name) => ({ path: join(folder, name), name: `${index === 0 ? ".git" : folder}/${name}` })),
  );
  let seen = 0;
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    seen += 1;
    if (seen > MAX_GIT_ENTRIES) return false;
    const { path, name } = next;
    const stats = look(path);
    if (stats === undefined) continue;
    if (!stats.isDirectory()) add(entries, name, path, false, recentFrom);
    else for (const child of namesIn(path)) pending.push({ path: join(path, child), name: `${name}/${child}` });
  }
  return true;
}

/** The repository's folder, and in a linked worktree also the one its refs are in. */
function gitFolders(root: string): readonly string[] {
  const own = join(repositoryTop(root) ?? root, ".git");
  const stats = look(own);
  if (stats === undefined) return [];
  if (stats.isDirectory()) return [own];
  const linked = /^gitdir: (.+)$/m.exec(readSmallFile(own) ?? "")?.[1];
  if (linked === undefined) return [];
  const folder = resolve(dirname(own), linked);
  const common = readSmallFile(join(folder, "commondir"))?.trim();
  return common === undefined ? [folder] : [folder, resolve(folder, common)];
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch (thrown) {
    if (systemCode(thrown) === undefined) throw thrown;
    return [];
  }
}

function look(path: string): BigIntStats | undefined {
  try {
    return lstatSync(path, { bigint: true });
  } catch (thrown) {
    if (systemCode(thrown) === undefined) throw thrown;
    return undefined;
  }
}

/** Undefined when the file is too large, gone, or not ours to read: then its times have to do. */
async function hashOf(path: string, signal: AbortSignal): Promise<string | undefined> {
  try {
    return await withFile(path, async (file) =>
      file.stats.size > MAX_FILE_BYTES ? undefined : sha256(await readUpTo(file, MAX_FILE_BYTES, signal)),
    );
  } catch (thrown) {
    if (signal.aborted || !isSluiceError(thrown)) throw thrown;
    return undefined;
  }
}
