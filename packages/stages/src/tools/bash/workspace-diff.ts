import { type BigIntStats, lstatSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import {
  type Clock,
  isSluiceError,
  type ToolCall,
  type ToolResult,
  type WatchedFiles,
  type Workspace,
} from "@sluice/core";
import { readUpTo, withFile } from "../files/open.ts";
import { entriesIn } from "../files/paths.ts";
import { withFallback } from "../files/results.ts";
import { MAX_FILE_BYTES, sha256 } from "../files/text.ts";
import { readSmallFile, repositoryTop } from "../search/gitignore.ts";
import { walk } from "../search/walk.ts";

const MAX_ENTRIES = 100_000;
const MAX_GIT_ENTRIES = 20_000;
/** A file that changed this recently may change again without a new timestamp. */
const RECENT_MS = 2_000;
const MAX_HASHED_FILES = 1_000;
/** Parts of a repository's folder that a reading command must not change. */
const GIT_ENTRIES = ["HEAD", "config", "packed-refs", "refs", "hooks", "info"];

/** A snapshot of a workspace to compare with later. */
export interface WorkspaceWatch {
  changes(signal: AbortSignal): Promise<WorkspaceChanges>;
}
export interface WorkspaceChanges {
  /** Paths relative to the workspace, in order. */
  readonly files: readonly { readonly path: string; readonly how: "created" | "changed" | "removed" }[];
  /** False if the workspace is too large to be compared completely. */
  readonly complete: boolean;
}

interface Entry {
  readonly path: string;
  /** All metadata that a write changes. */
  readonly mark: string;
  readonly recent: boolean;
}

/**
 * Records all files that git does not ignore, and the repository's refs, hooks and settings, without starting a program. With
 * `watched`, only what matches, but also where git ignores it: a call could have git ignore a file before it changes it.
 */
export async function watchWorkspace(
  workspace: Workspace,
  clock: Clock,
  signal: AbortSignal,
  watched?: WatchedFiles,
): Promise<WorkspaceWatch> {
  const before = await survey({ workspace, watched, recentFrom: clock.now() - RECENT_MS, signal });
  const hashes = new Map<string, string>();
  for (const [name, entry] of before.entries) {
    if (!entry.recent || hashes.size >= MAX_HASHED_FILES) continue;
    const hash = await hashOf(entry.path, signal);
    if (hash !== undefined) hashes.set(name, hash);
  }
  return {
    async changes(later) {
      const after = await survey({ workspace, watched, recentFrom: clock.now(), signal: later });
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

/** Runs a call that does not know what it changes, and reports which of the watched files changed meanwhile. */
export async function reportingChanges(
  { workspace, watched, signal }: Pick<ToolCall, "workspace" | "watched" | "signal">,
  clock: Clock,
  act: () => Promise<ToolResult>,
): Promise<ToolResult> {
  if (watched === undefined) return await act();
  const watch = await watchWorkspace(workspace, clock, signal, watched);
  const result = await act();
  const changes = signal.aborted ? undefined : await comparedWith(watch, signal);
  if (changes === undefined) return { ...result, changed: [], changesUnknown: true };
  const { files, complete } = changes;
  // Beside other calls, it is unknown which of them changed a file, so each of them counts.
  return { ...result, changed: files.map(({ path }) => path), ...(complete ? {} : { changesUnknown: true }) };
}

/** Undefined where the files cannot be compared: the call has already acted. */
async function comparedWith(watch: WorkspaceWatch, signal: AbortSignal): Promise<WorkspaceChanges | undefined> {
  try {
    return await watch.changes(signal);
  } catch (thrown) {
    if (signal.aborted || isSluiceError(thrown)) return undefined;
    throw thrown;
  }
}

interface Survey {
  readonly workspace: Workspace;
  readonly watched: WatchedFiles | undefined;
  readonly recentFrom: number;
  readonly signal: AbortSignal;
}

async function survey({ workspace, watched, recentFrom, signal }: Survey): Promise<{
  readonly entries: ReadonlyMap<string, Entry>;
  readonly complete: boolean;
}> {
  const entries = new Map<string, Entry>();
  let complete = true;
  const found = walk({
    workspace,
    start: workspace.root,
    nodeModules: true,
    signal,
    unreadable: () => (complete = false),
    ...(watched === undefined
      ? {}
      : { selects: (path, isFolder) => watched.matches(path) || (isFolder && watched.mayHold(path)) }),
  });
  let seen = 0;
  for await (const { path, names, kind } of found) {
    if (seen >= MAX_ENTRIES) {
      complete = false;
      break;
    }
    seen += 1;
    const name = names.join("/");
    // Patterns are of files, so a folder that matches one does not count.
    if (watched === undefined || (kind !== "folder" && watched.matches(name)))
      add(entries, name, path, kind === "folder", recentFrom);
  }
  return { entries, complete: surveyGit(workspace.root, entries, { watched, recentFrom }) && complete };
}

function add(entries: Map<string, Entry>, name: string, path: string, isFolder: boolean, recentFrom: number): void {
  // Temporary files change a folder's times, so only its existence counts.
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

/** Returns false if there are too many entries. */
function surveyGit(
  root: string,
  entries: Map<string, Entry>,
  { watched, recentFrom }: Pick<Survey, "watched" | "recentFrom">,
): boolean {
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
    if (!stats.isDirectory()) {
      if (watched?.matches(name) !== false) add(entries, name, path, false, recentFrom);
    } else
      for (const child of entriesIn(path))
        pending.push({ path: join(path, child.name), name: `${name}/${child.name}` });
  }
  return true;
}

/** The folder of the repository, and for a linked work tree also the shared one with the refs. */
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

function look(path: string): BigIntStats | undefined {
  return withFallback(() => lstatSync(path, { bigint: true }), undefined);
}

/** Undefined if the file is too large, missing or unreadable; then only its metadata counts. */
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
