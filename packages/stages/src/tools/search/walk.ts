import type { Dirent } from "node:fs";
import { join, relative, sep } from "node:path";
import { isSluiceError, type Workspace } from "@sluice/core";
import { listFolder } from "../files/open.ts";
import { contains } from "../files/paths.ts";
import { asFault, checkAborted, systemCode } from "../files/results.ts";
import { type Turns, takeTurns } from "../turns.ts";
import { type Ignores, ignoresAt, ignoresIn, isIgnored } from "./gitignore.ts";

/** Steps that an entry is counted as, besides what its rules take. */
const ENTRY_STEPS = 1_000;

export interface WalkOptions {
  readonly workspace: Workspace;
  /** Where to begin: a real path in the workspace. */
  readonly start: string;
  /** Enter folders named node_modules. */
  readonly nodeModules: boolean;
  readonly signal: AbortSignal;
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
 * Everything below a folder in path order, without what git ignores, `.git` and the run store. Links are named, never
 * followed. The folder itself is entered even where its parents' rules would leave it out: somebody asked for it.
 */
export async function* walk(options: WalkOptions): AsyncGenerator<WalkEntry> {
  const { workspace, start } = options;
  const ignores = ignoresAt(start, workspace.root);
  const turns = takeTurns(options.signal);
  const pending = await entriesOf(
    { path: start, names: namesOf(workspace.root, start), kind: "folder", ignores },
    options,
    turns,
  );
  for (let entry = pending.pop(); entry !== undefined; entry = pending.pop()) {
    yield entry;
    if (entry.kind !== "folder") continue;
    const depth = namesOf(entry.ignores.top, entry.path).length;
    const inside = { ...entry, ignores: ignoresIn(entry.path, entry.ignores, depth) };
    pending.push(...(await entriesOf(inside, options, turns)));
  }
}

/** What is in a folder, last first, so that popping gives path order. */
async function entriesOf(folder: Pending, options: WalkOptions, turns: Turns): Promise<Pending[]> {
  checkAborted(options.signal);
  const entries = await list(folder.path, options);
  const outside = namesOf(folder.ignores.top, folder.path);
  const kept: Pending[] = [];
  for (const entry of entries.sort((a, b) => (a.name < b.name ? 1 : -1))) {
    const turn = turns.spend(ENTRY_STEPS);
    if (turn !== undefined) await turn;
    const path = join(folder.path, entry.name);
    const kind = kindOf(entry);
    if (entry.name === ".git" || (entry.name === "node_modules" && !options.nodeModules)) continue;
    if (options.workspace.store !== undefined && contains(options.workspace.store, path)) continue;
    if (await isIgnored(folder.ignores, [...outside, entry.name], kind === "folder", turns)) continue;
    kept.push({ path, names: [...folder.names, entry.name], kind, ignores: folder.ignores });
  }
  return kept;
}

async function list(folder: string, options: WalkOptions): Promise<Dirent[]> {
  try {
    // A link that took the folder's place since its parent was read is not followed.
    return await listFolder(folder);
  } catch (thrown) {
    if (systemCode(thrown) === undefined && !isSluiceError(thrown)) throw thrown;
    const { code } = asFault(thrown, folder);
    // Gone since its parent was read is no news; anything else is.
    if (code !== "not_found") options.unreadable?.(folder);
    return [];
  }
}

function kindOf(entry: Dirent): WalkEntry["kind"] {
  if (entry.isSymbolicLink()) return "link";
  if (entry.isDirectory()) return "folder";
  return entry.isFile() ? "file" : "other";
}

function namesOf(from: string, to: string): string[] {
  return relative(from, to)
    .split(sep)
    .filter((name) => name !== "");
}
