import { messageOf } from "@sluice/core/runtime";
import { holdsInOrder } from "./rank.ts";

/** The files that match a query, best first; `fault` says why some may be missing. */
export interface FoundFiles {
  readonly query: string;
  readonly files: readonly string[];
  readonly fault?: string;
}

export interface FileFinder {
  /** Finds files. `now` (epoch milliseconds) decides whether they are listed again. Never rejects. */
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

type Listed = Omit<FoundFiles, "query">;

/** Finds files by some of their letters. The first query lists them. */
export function createFileFinder({ list, staleMs = STALE_MS }: FileFinderOptions): FileFinder {
  const stop = new AbortController();
  let listing: Promise<Listed> | undefined;
  let listedAt = 0;
  return {
    async find(query, now) {
      if (listing === undefined || now - listedAt >= staleMs) {
        listing = listNow(list, stop.signal, listing);
        listedAt = now;
      }
      const { files, ...fault } = await listing;
      return { query, files: bestOf(files, query), ...fault };
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

/** After a fault, with the files that were listed before. */
async function listNow(
  list: FileFinderOptions["list"],
  signal: AbortSignal,
  before: Promise<Listed> | undefined,
): Promise<Listed> {
  try {
    const { files } = await list(signal);
    return { files: files.slice(0, MAX_FILES) };
  } catch (thrown) {
    const { files = [] } = (await before) ?? {};
    return { files, fault: `files cannot be listed: ${messageOf(thrown)}` };
  }
}

/** Files by how well they match, then by length; without a query, those nearest to the root. */
function bestOf(files: readonly string[], query: string): readonly string[] {
  const wanted = query.toLowerCase();
  const scored = files.flatMap((file) => {
    const tier = query === "" ? file.split("/").length : tierOf(file.toLowerCase(), wanted);
    return tier === undefined ? [] : [{ file, tier }];
  });
  const byLength = query === "" ? 0 : 1;
  return scored
    .sort((a, b) => a.tier - b.tier || byLength * (a.file.length - b.file.length))
    .slice(0, MAX_FOUND)
    .map(({ file }) => file);
}

/** Lower for a better match: its name begins with the query, contains it, its path does, or has its letters in order. */
function tierOf(path: string, query: string): number | undefined {
  const name = path.slice(path.lastIndexOf("/") + 1);
  if (name.startsWith(query)) return 0;
  if (name.includes(query)) return 1;
  if (path.includes(query)) return 2;
  return holdsInOrder(path, query) ? 3 : undefined;
}
