import { type BigIntStats, lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { systemClock } from "@sluice/core";
import { systemCode } from "../tools/files/results.ts";

/** Folders that are looked at; the nearest come first. */
const MOST_FOLDERS = 20_000;
/** Between two breaks, in folders. */
const AT_ONCE = 500;
/** The clock of a file system may stand still for so long; a folder that changed within it is read again. */
const RACY_MS = 50n;
/** Programs of the host obey what is called so, wherever it is. */
const OBEYED = /^(?:\.git|\.sluice|sluice\.config\..+)$/i;

/** Something in a folder that a wall has to treat apart. */
export interface Mark {
  readonly path: string;
  /** `obeyed`: a later command of the host may run what stands there. `channel`: a socket or FIFO, to whoever listens outside. */
  readonly kind: "obeyed" | "channel";
  /** The same for the same file, wherever it was moved to. */
  readonly identity: string;
}

interface KnownFolder {
  readonly changed: bigint;
  readonly racy: boolean;
  readonly marks: readonly Mark[];
  readonly folders: readonly string[];
}

/**
 * Finds the marks below folders. A folder is read again only when it changed, so that the second look costs one `lstat` a
 * folder. Not looked into: `node_modules`, what is itself obeyed, links, and what is beyond the limit.
 */
export function folderMarks(): (tops: readonly string[]) => Promise<readonly Mark[]> {
  const known = new Map<string, KnownFolder>();

  const look = (folder: string): KnownFolder | undefined => {
    const stats = lstatSync(folder, { bigint: true, throwIfNoEntry: false });
    if (stats?.isDirectory() !== true) return undefined;
    const before = known.get(folder);
    if (before !== undefined && before.changed === stats.ctimeNs && !before.racy) return before;
    const now = { ...contentsOf(folder), changed: stats.ctimeNs, racy: isRacy(stats) };
    known.set(folder, now);
    return now;
  };

  return async (tops) => {
    const marks: Mark[] = [];
    const queue = [...tops];
    for (let at = 0; at < queue.length && at < MOST_FOLDERS; at += 1) {
      if (at % AT_ONCE === AT_ONCE - 1) await setImmediate();
      const folder = look(queue[at] ?? "");
      if (folder === undefined) continue;
      marks.push(...folder.marks);
      queue.push(...folder.folders);
    }
    return marks;
  };
}

function isRacy({ ctimeMs }: BigIntStats): boolean {
  return BigInt(systemClock.now()) - ctimeMs < RACY_MS;
}

function contentsOf(folder: string): Pick<KnownFolder, "marks" | "folders"> {
  let entries: ReturnType<typeof entriesOf>;
  try {
    entries = entriesOf(folder);
  } catch (thrown) {
    // What this process cannot read, its commands cannot either.
    if (systemCode(thrown) === undefined) throw thrown;
    return { marks: [], folders: [] };
  }
  const names = new Set(entries.map(({ name }) => name));
  // A folder that is shaped like a repository is one, without a name that says so.
  const isRepository = ["HEAD", "objects", "refs"].every((name) => names.has(name));
  const isObeyed = (name: string): boolean =>
    OBEYED.test(name) || (isRepository && (name === "HEAD" || name === "config"));
  return {
    marks: entries.flatMap((entry) => {
      const isChannel = entry.isSocket() || entry.isFIFO();
      if (!isChannel && !isObeyed(entry.name)) return [];
      const path = join(folder, entry.name);
      const stats = lstatSync(path, { bigint: true, throwIfNoEntry: false });
      if (stats === undefined) return [];
      // A link cannot be mounted over, so one that was made anew may have the old one's number.
      const made = stats.isSymbolicLink() ? `:${stats.ctimeNs}` : "";
      return [{ path, kind: isChannel ? "channel" : "obeyed", identity: `${stats.dev}:${stats.ino}${made}` }];
    }),
    folders: entries
      .filter((entry) => entry.isDirectory() && entry.name !== "node_modules" && !isObeyed(entry.name))
      .map(({ name }) => join(folder, name)),
  };
}

function entriesOf(folder: string) {
  return readdirSync(folder, { withFileTypes: true });
}
