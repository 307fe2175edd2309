import type { Dirent } from "node:fs";
import { join } from "node:path";
import { isSluiceError, type Workspace } from "@sluice/core";
import { listFolder } from "../files/open.ts";
import { contains, displayPath, namesBetween } from "../files/paths.ts";
import { asFault, checkAborted, systemCode } from "../files/results.ts";
import { type Turns, takeTurns } from "../turns.ts";
import { type Ignores, ignoresAt, ignoresIn, isIgnored } from "./gitignore.ts";
import type { PathMatcher } from "./glob-match.ts";

/** Entries of a listing; bounds the work in a huge tree. */
export const MAX_ENTRIES = 300_000;
/** Steps counted for an entry, in addition to those of its rules. */
const ENTRY_STEPS = 1_000;

export interface WalkOptions {
  readonly workspace: Workspace;
  /** The folder to start in: a real path in the workspace. */
  readonly start: string;
  /** A folder below the start to which the walk is limited. */
  readonly within?: string;
  /** Whether to enter folders named node_modules. */
  readonly nodeModules: boolean;
  readonly signal: AbortSignal;
  /** What is listed, and which folders are entered, instead of what git does not ignore. `path` is relative to the workspace. */
  readonly selects?: (path: string, isFolder: boolean) => boolean;
  /** Called for a folder that cannot be read. */
  readonly unreadable?: (folder: string) => void;
}

export interface WalkEntry {
  readonly path: string;
  /** Names from the workspace's root. */
  readonly names: readonly string[];
  readonly kind: "file" | "folder" | "link" | "other";
}

interface Pending extends WalkEntry {
  readonly ignores: Ignores;
}

/**
 * Everything below a folder in path order, without what git ignores or `selects` leaves out, `.git` and the run store. Links are
 * listed, never followed. The start folder is entered even if it is ignored, since the caller named it.
 */
export async function* walk(options: WalkOptions): AsyncGenerator<WalkEntry> {
  const { workspace, start } = options;
  const ignores = ignoresAt(start, workspace.root);
  const turns = takeTurns(options.signal);
  const pending = await entriesOf(
    { path: start, names: namesBetween(workspace.root, start), kind: "folder", ignores },
    options,
    turns,
  );
  for (let entry = pending.pop(); entry !== undefined; entry = pending.pop()) {
    yield entry;
    if (entry.kind !== "folder") continue;
    const depth = namesBetween(entry.ignores.top, entry.path).length;
    const inside = { ...entry, ignores: ignoresIn(entry.path, entry.ignores, depth) };
    pending.push(...(await entriesOf(inside, options, turns)));
  }
}

/** The entries of a folder in reverse order, so that popping gives path order. */
async function entriesOf(folder: Pending, options: WalkOptions, turns: Turns): Promise<Pending[]> {
  checkAborted(options.signal);
  const entries = await list(folder.path, options);
  const outside = namesBetween(folder.ignores.top, folder.path);
  const kept: Pending[] = [];
  for (const entry of entries.sort((a, b) => (a.name < b.name ? 1 : -1))) {
    const turn = turns.spend(ENTRY_STEPS);
    if (turn !== undefined) await turn;
    const path = join(folder.path, entry.name);
    const kind = kindOf(entry);
    if (entry.name === ".git" || (entry.name === "node_modules" && !options.nodeModules)) continue;
    if (options.workspace.store !== undefined && contains(options.workspace.store, path)) continue;
    const { within = folder.path } = options;
    if (!contains(within, path) && !contains(path, within)) continue;
    const names = [...folder.names, entry.name];
    if (options.selects === undefined) {
      if (await isIgnored(folder.ignores, [...outside, entry.name], kind === "folder", turns)) continue;
    } else if (!options.selects(names.join("/"), kind === "folder")) continue;
    kept.push({ path, names, kind, ignores: folder.ignores });
  }
  return kept;
}

async function list(folder: string, options: WalkOptions): Promise<Dirent[]> {
  try {
    // A link that has replaced the folder is not followed.
    return await listFolder(folder);
  } catch (thrown) {
    if (systemCode(thrown) === undefined && !isSluiceError(thrown)) throw thrown;
    const { code } = asFault(thrown, folder);
    // A folder that has been removed meanwhile is not a problem.
    if (code !== "not_found") options.unreadable?.(folder);
    return [];
  }
}

function kindOf(entry: Dirent): WalkEntry["kind"] {
  if (entry.isSymbolicLink()) return "link";
  if (entry.isDirectory()) return "folder";
  return entry.isFile() ? "file" : "other";
}

/** The files below a folder. */
export interface FoundFiles {
  /** In path order; `names` lead to the file from the folder. */
  readonly files: readonly Pick<WalkEntry, "path" | "names">[];
  /** Whether there are more files than wanted. */
  readonly more: boolean;
  /** Whether the folder has more than MAX_ENTRIES entries, so the rest was not looked at. */
  readonly stopped: boolean;
  /** Number of folders that cannot be read. */
  readonly unreadable: number;
}

/** At most `most` files of such a walk, with links if wanted, whose names below the start match the glob. */
export async function findFiles(
  options: WalkOptions & {
    readonly most: number;
    readonly links: boolean;
    readonly glob?: { readonly match: PathMatcher; readonly length: number };
  },
): Promise<FoundFiles> {
  const { workspace, start, most, links, glob } = options;
  const depth = namesBetween(workspace.root, start).length;
  const turns = takeTurns(options.signal);
  const files: Pick<WalkEntry, "path" | "names">[] = [];
  let seen = 0;
  let unreadable = 0;
  const entries = walk({ ...options, unreadable: () => (unreadable += 1) });
  for await (const { path, names, kind } of entries) {
    seen += 1;
    if (seen > MAX_ENTRIES || files.length > most) break;
    if (kind !== "file" && !(links && kind === "link")) continue;
    const below = names.slice(depth);
    const turn = glob === undefined ? undefined : turns.spend(glob.length * path.length);
    if (turn !== undefined) await turn;
    if (glob === undefined || glob.match(below)) files.push({ path, names: below });
  }
  return { files: files.slice(0, most), more: files.length > most, stopped: seen > MAX_ENTRIES, unreadable };
}

/** The files of a workspace, for a person to choose from. */
export interface WorkspaceFiles {
  /** Relative to the workspace, with `/`, in path order. */
  readonly files: readonly string[];
  /** Whether the listing is incomplete. */
  readonly cut: boolean;
}
/**
 * At most `most` files and links of a workspace, without what git ignores, `.git`, `node_modules` and the run store. Links are
 * listed, never followed. Rejects with `aborted` once the signal aborts.
 */
export async function workspaceFiles(
  workspace: Workspace,
  options: { readonly most: number; readonly signal: AbortSignal },
): Promise<WorkspaceFiles> {
  const found = await findFiles({ workspace, start: workspace.root, nodeModules: false, links: true, ...options });
  return { files: found.files.map(({ path }) => displayPath(path, workspace)), cut: found.more || found.stopped };
}
