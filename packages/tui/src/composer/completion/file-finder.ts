import { messageOf } from "@sluice/core";
import { holdsInOrder } from "./rank.ts";

/** The files that `@` offers, as they are named: relative to the workspace, with `/`. */
export interface FileListing {
  readonly files: readonly string[];
}

/** What fits a query, the best first; `fault` says why there may be less than there should. */
export interface FoundFiles {
  readonly query: string;
  readonly files: readonly string[];
  readonly fault?: string;
}

export interface FileFinder {
  /** The files that fit. `now` (epoch ms) tells whether the listing is old: then it is made anew meanwhile. Never rejects. */
  find(query: string, now: number): Promise<FoundFiles>;
  /** Gives up a listing that is being made. */
  close(): void;
}

export interface FileFinderOptions {
  readonly list: (signal: AbortSignal) => Promise<FileListing>;
  /** Milliseconds after which a listing is old. */
  readonly staleMs?: number;
}

/** Files of a workspace that are offered. */
const MOST_FILES = 20_000;

const STALE_MS = 15_000;
const MOST_FOUND = 50;
/** Paths that are scored letter by letter, which costs a hundred times as much as finding them. */
const MOST_SCORED = 400;

interface Listed {
  readonly files: readonly string[];
  readonly lower: readonly string[];
  readonly at: number;
  readonly fault?: string;
}

/** Finds files by some of their letters. They are listed when first asked for, at most once at a time. */
export function createFileFinder({ list, staleMs = STALE_MS }: FileFinderOptions): FileFinder {
  const stop = new AbortController();
  let listed: Listed | undefined;
  let listing: Promise<Listed> | undefined;
  const refresh = (now: number): Promise<Listed> => {
    listing ??= listNow(list, stop.signal, now, listed).then((fresh) => {
      listed = fresh;
      listing = undefined;
      return fresh;
    });
    return listing;
  };
  return {
    async find(query, now) {
      const isOld = listed === undefined || now - listed.at >= staleMs;
      const coming = isOld ? refresh(now) : undefined;
      const { files, lower, fault } = listed ?? (await (coming ?? refresh(now)));
      return { query, files: await bestOf(files, lower, query), ...(fault === undefined ? {} : { fault }) };
    },
    close: () => stop.abort(),
  };
}

/** The listing of the workspace at `root` (absolute, links resolved), without what git ignores and the run store. */
export function workspaceListing(root: string, storeNow: () => Promise<string | undefined>): FileFinderOptions["list"] {
  return async (signal) => {
    // Slow to load, and not needed to show the prompt.
    const { workspaceFiles } = await import("@sluice/stages");
    const store = await storeNow();
    return await workspaceFiles({ root, ...(store === undefined ? {} : { store }) }, { most: MOST_FILES, signal });
  };
}

async function listNow(
  list: FileFinderOptions["list"],
  signal: AbortSignal,
  now: number,
  before: Listed | undefined,
): Promise<Listed> {
  try {
    const { files } = await list(signal);
    const kept = files.slice(0, MOST_FILES);
    return { files: kept, lower: kept.map((file) => file.toLowerCase()), at: now };
  } catch (thrown) {
    const fault = `files cannot be listed: ${messageOf(thrown)}`;
    return { files: before?.files ?? [], lower: before?.lower ?? [], at: now, fault };
  }
}

async function bestOf(files: readonly string[], lower: readonly string[], query: string): Promise<readonly string[]> {
  if (query === "") return nearRoot(files).slice(0, MOST_FOUND);
  const near = fitting(files, lower, query.toLowerCase());
  const { Fzf } = await import("fzf");
  const fzf = new Fzf(near, {
    limit: MOST_FOUND,
    selector: (near: Near) => near.file,
    casing: "case-insensitive",
    normalize: false,
    // The last letters of a path tell the most.
    forward: false,
    tiebreakers: [nearerFirst],
  });
  // Its types do not resolve under nodenext.
  const found: readonly { readonly item: Near }[] = fzf.find(query);
  return found.map(({ item }) => item.file);
}

/** A path that holds the letters of a query in order, and how closely: the lower the closer. */
interface Near {
  readonly file: string;
  readonly tier: number;
}

function nearerFirst(a: { readonly item: Near }, b: { readonly item: Near }): number {
  return byTier(a.item, b.item);
}

function byTier(a: Near, b: Near): number {
  return a.tier - b.tier || a.file.length - b.file.length;
}

function nearRoot(files: readonly string[]): readonly string[] {
  const depth = (file: string): number => file.split("/").length;
  return files
    .map((file) => ({ file, depth: depth(file) }))
    .sort((a, b) => a.depth - b.depth)
    .map(({ file }) => file);
}

/** What is worth scoring: names that begin with the query, names and paths that hold it, then the shortest of the rest. */
function fitting(files: readonly string[], lower: readonly string[], typed: string): readonly Near[] {
  const found: Near[] = [];
  for (const [index, path] of lower.entries()) {
    if (!holdsInOrder(path, typed)) continue;
    const name = path.slice(path.lastIndexOf("/") + 1);
    const tier = name.startsWith(typed) ? 0 : name.includes(typed) ? 1 : path.includes(typed) ? 2 : 3;
    found.push({ file: files[index] ?? "", tier });
  }
  return found.length <= MOST_SCORED ? found : found.sort(byTier).slice(0, MOST_SCORED);
}
