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

interface Listed extends Omit<FoundFiles, "query"> {
  /** The time of the last query before the listing was complete. */
  readonly at: number;
}

/** Finds files by some of their letters. The first query lists them; listings never overlap. */
export function createFileFinder({ list, staleMs = STALE_MS }: FileFinderOptions): FileFinder {
  const stop = new AbortController();
  let listed: Listed | undefined;
  let listing: Promise<Listed> | undefined;
  let asked = 0;
  const renewed = (): Promise<Listed> => {
    listing ??= listNow(list, stop.signal, listed?.files ?? []).then((found) => {
      listing = undefined;
      listed = { ...found, at: asked };
      return listed;
    });
    return listing;
  };
  return {
    async find(query, now) {
      asked = now;
      if (listed !== undefined && now - listed.at >= staleMs) void renewed();
      const { files, fault } = listed ?? (await renewed());
      return { query, files: await bestOf(files, query), ...(fault === undefined ? {} : { fault }) };
    },
    close: () => stop.abort(),
  };
}

/** Lists the workspace at `root` (absolute, links resolved) without ignored files and the run store. */
export function workspaceListing(root: string, storeNow: () => Promise<string | undefined>): FileFinderOptions["list"] {
  return async (signal) => {
    // Slow to load, and not needed for the prompt.
    const { workspaceFiles } = await import("@sluice/stages/tools");
    const store = await storeNow();
    return await workspaceFiles({ root, ...(store === undefined ? {} : { store }) }, { most: MAX_FILES, signal });
  };
}

/** After a fault, with the files that were listed before. */
async function listNow(
  list: FileFinderOptions["list"],
  signal: AbortSignal,
  before: readonly string[],
): Promise<Omit<Listed, "at">> {
  try {
    const { files } = await list(signal);
    return { files: files.slice(0, MAX_FILES) };
  } catch (thrown) {
    return { files: before, fault: `files cannot be listed: ${messageOf(thrown)}` };
  }
}

/** The files that match, as fzf ranks them; without a query, those nearest to the root. */
async function bestOf(files: readonly string[], query: string): Promise<readonly string[]> {
  const wanted = query.toLowerCase();
  const near = files.flatMap((file) => {
    const tier = query === "" ? file.split("/").length : tierOf(file.toLowerCase(), wanted);
    return tier === undefined ? [] : [{ file, tier }];
  });
  const byLength = query === "" ? 0 : 1;
  const sorted = near
    .sort((a, b) => a.tier - b.tier || byLength * (a.file.length - b.file.length))
    .slice(0, MAX_SCORED)
    .map(({ file }) => file);
  if (query === "") return sorted.slice(0, MAX_FOUND);
  const { Fzf } = await import("fzf");
  // Files of one score keep their order. The end of a path is the most specific.
  const fzf = new Fzf(sorted, { limit: MAX_FOUND, casing: "case-insensitive", normalize: false, forward: false });
  // Its types do not resolve under nodenext.
  const found: readonly { readonly item: string }[] = fzf.find(query);
  return found.map(({ item }) => item);
}

/** Lower for a better match: its name begins with the query, contains it, its path does, or has its letters in order. */
function tierOf(path: string, query: string): number | undefined {
  const name = path.slice(path.lastIndexOf("/") + 1);
  if (name.startsWith(query)) return 0;
  if (name.includes(query)) return 1;
  if (path.includes(query)) return 2;
  return holdsInOrder(path, query) ? 3 : undefined;
}
