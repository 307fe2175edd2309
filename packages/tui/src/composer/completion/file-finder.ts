import { messageOf } from "@sluice/core/runtime";
import { holdsInOrder } from "./rank.ts";

/** The files that match a query, best first; `fault` says why some may be missing. */
export interface FoundFiles {
  readonly query: string;
  readonly files: readonly string[];
  readonly fault?: string;
}

export interface FileFinder {
  /** Finds files. `now` (epoch milliseconds) decides whether the listing is renewed meanwhile. Never rejects. */
  find(query: string, now: number): Promise<FoundFiles>;
  /** Aborts a listing in progress. */
  close(): void;
}

interface FileFinderOptions {
  /** Lists the files relative to the workspace, with `/`. */
  readonly list: (signal: AbortSignal) => Promise<{ readonly files: readonly string[] }>;
  /** Age at which a listing is renewed, in milliseconds. */
  readonly staleMs?: number;
}

/** Files of a workspace that can be completed. */
const MAX_FILES = 20_000;

const STALE_MS = 15_000;
const MAX_FOUND = 50;
/** Paths that are scored letter by letter, which is expensive. */
const MAX_SCORED = 400;

interface Listed {
  readonly files: readonly string[];
  readonly lower: readonly string[];
  readonly at: number;
  readonly fault?: string;
}

/** Finds files by some of their letters. The first query lists them; listings never overlap. */
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
      const renewed = isOld ? refresh(now) : undefined;
      const { files, lower, fault } = listed ?? (await (renewed ?? refresh(now)));
      return { query, files: await bestOf(files, lower, query), ...(fault === undefined ? {} : { fault }) };
    },
    close: () => stop.abort(),
  };
}

/** Lists the workspace at `root` (absolute, links resolved) without ignored files and the run store. */
export function workspaceListing(root: string, storeNow: () => Promise<string | undefined>): FileFinderOptions["list"] {
  return async (signal) => {
    // Slow to load, and not needed for the prompt.
    const { workspaceFiles } = await import("@sluice/stages");
    const store = await storeNow();
    return await workspaceFiles({ root, ...(store === undefined ? {} : { store }) }, { most: MAX_FILES, signal });
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
    const first = files.slice(0, MAX_FILES);
    return { files: first, lower: first.map((file) => file.toLowerCase()), at: now };
  } catch (thrown) {
    const fault = `files cannot be listed: ${messageOf(thrown)}`;
    return { files: before?.files ?? [], lower: before?.lower ?? [], at: now, fault };
  }
}

async function bestOf(files: readonly string[], lower: readonly string[], query: string): Promise<readonly string[]> {
  if (query === "") return nearRoot(files).slice(0, MAX_FOUND);
  const near = matching(files, lower, query.toLowerCase());
  const { Fzf } = await import("fzf");
  const fzf = new Fzf(near, {
    limit: MAX_FOUND,
    selector: (near: Near) => near.file,
    casing: "case-insensitive",
    normalize: false,
    // The end of a path is the most specific.
    forward: false,
    tiebreakers: [nearerFirst],
  });
  // Its types do not resolve under nodenext.
  const found: readonly { readonly item: Near }[] = fzf.find(query);
  return found.map(({ item }) => item.file);
}

/** A path that contains the letters of a query in order; a lower tier is a closer match. */
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

/** The paths to score: names with the query as prefix, names and paths that contain it, then the shortest others. */
function matching(files: readonly string[], lower: readonly string[], query: string): readonly Near[] {
  const found: Near[] = [];
  for (const [index, path] of lower.entries()) {
    if (!holdsInOrder(path, query)) continue;
    const name = path.slice(path.lastIndexOf("/") + 1);
    const tier = name.startsWith(query) ? 0 : name.includes(query) ? 1 : path.includes(query) ? 2 : 3;
    found.push({ file: files[index] ?? "", tier });
  }
  return found.length <= MAX_SCORED ? found : found.sort(byTier).slice(0, MAX_SCORED);
}
