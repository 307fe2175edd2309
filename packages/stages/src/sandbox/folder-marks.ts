import { isUtf8 } from "node:buffer";
import { type BigIntStats, lstatSync, readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { systemClock } from "@sluice/core";
import { messageOf } from "@sluice/core/runtime";
import { certain, certainPath, openAgain } from "../tools/files/closed-folders.ts";
import { contains, entriesIn } from "../tools/files/paths.ts";
import { fault, withFallback } from "../tools/files/results.ts";

/** Folders that are visited, the nearest first. */
const MOST_FOLDERS = 20_000;
/** Folders between two pauses for other work. */
const AT_ONCE = 500;
/** Resolution of file system clocks; a folder that changed within it is read again. */
const RACY_MS = 50n;
/** The rights without which an owner cannot search a folder. */
const SEARCH_RIGHTS = 0o500n;
/** What stands in a name for bytes that are no UTF-8. */
const NO_TEXT = "\uFFFD";
/** Names that programs of the host obey in any folder. */
const OBEYED = /^(?:\.git|\.sluice|sluice\.config\..+)$/i;
/** In a folder that is a repository: without some of these it is none, and others name programs or repositories, or are run. */
const OF_REPOSITORY = new Set([
  ...["HEAD", "commondir", "config", "config.worktree", "hooks", "index", "info", "modules", "worktrees"],
]);

/** An entry of a folder that the wall has to cover. */
export interface Mark {
  readonly path: string;
  /** `obeyed`: a later command of the host may run its content. `channel`: a socket or FIFO to a process outside. */
  readonly kind: "obeyed" | "channel";
  /** Differs from that of what takes its place. */
  readonly identity: string;
  /** When it was made, changed or moved last, in milliseconds. */
  readonly changed: bigint;
  /** The name, if it is no text: the path does not lead there then. */
  readonly bytes?: Buffer;
  /** Of a part of a repository that is recognised by its content: the path of `HEAD`, without which it is none. */
  readonly head?: string;
}

/** What a search found. */
export interface FoundMarks {
  readonly marks: readonly Mark[];
  /** Whether no folder was beyond the limit. */
  readonly isWhole: boolean;
}

interface KnownFolder {
  /** Another folder at its path may have the same time of change. */
  readonly identity: string;
  readonly changed: bigint;
  readonly racy: boolean;
  readonly marks: readonly Mark[];
  readonly folders: readonly string[];
}

/**
 * Finds the marks below folders. An unchanged folder is not read again, so a second search costs one `lstat` per folder. Skips
 * `node_modules`, obeyed folders, links, what cannot be read, and everything beyond the limit. Folders of this user in the areas, in
 * which a command may write, are made readable for it.
 */
export function folderMarks(): (tops: readonly string[], areas: readonly string[]) => Promise<FoundMarks> {
  const known = new Map<string, KnownFolder>();

  const look = (folder: string, areas: readonly string[]): KnownFolder | undefined => {
    const found = statsOf(folder);
    const isClosed = found !== undefined && (found.mode & SEARCH_RIGHTS) !== SEARCH_RIGHTS;
    const opens = isClosed && areas.some((area) => contains(area, folder));
    const stats = opens && openAgain(folder) !== undefined ? statsOf(folder) : found;
    if (stats?.isDirectory() !== true) return undefined;
    const before = known.get(folder);
    const identity = identityOf(stats);
    const isSame = before?.identity === identity;
    if (isSame && before.changed === stats.ctimeNs && !before.racy) return before;
    const now = { ...contentsOf(folder), identity, changed: stats.ctimeNs, racy: isRacy(stats) };
    known.set(folder, now);
    return now;
  };

  /** Throws `sandbox_failed`, which names the folder, if reading it fails for another reason than those of the system. */
  const lookInto = (folder: string, areas: readonly string[]): KnownFolder | undefined => {
    try {
      return look(folder, areas);
    } catch (thrown) {
      const message = `${folder} cannot be searched for what programs of this machine would obey: ${messageOf(thrown)}`;
      throw fault("sandbox_failed", message, { path: folder });
    }
  };

  return async (tops, areas) => {
    const marks: Mark[] = [];
    const queue = [...tops];
    for (let at = 0; at < queue.length && at < MOST_FOLDERS; at += 1) {
      if (at % AT_ONCE === AT_ONCE - 1) await setImmediate();
      const folder = lookInto(queue[at] ?? "", areas);
      // One by one, since a folder may hold more than a call may have arguments.
      for (const mark of folder?.marks ?? []) marks.push(mark);
      for (const below of folder?.folders ?? []) queue.push(below);
    }
    return { marks, isWhole: queue.length <= MOST_FOLDERS };
  };
}

/** Names a mark that is where it was. What was moved with its folder gets a new name: a path that it holds may lead elsewhere now. */
export function keyOf({ path, identity }: Pick<Mark, "path" | "identity">): string {
  return `${identity} ${path}`;
}

/** Undefined also for what cannot be examined, such as a path that is too long for the system. */
function statsOf(path: string | Buffer): BigIntStats | undefined {
  return withFallback(() => lstatSync(path, { bigint: true }), undefined);
}

/** The identity of what is at a path, as in marks. Undefined if it cannot be examined. */
export function identityAt(path: string): string | undefined {
  const stats = statsOf(path);
  return stats === undefined ? undefined : identityOf(stats);
}

function identityOf(stats: BigIntStats): string {
  // A link cannot be mounted over, so a new link may reuse the inode of the old one.
  const made = stats.isSymbolicLink() ? `:${stats.ctimeNs}` : "";
  return `${stats.dev}:${stats.ino}${made}`;
}

/** What is at a path that is obeyed wherever it lies; empty if nothing is. Links on the way lead to it. A command may write the areas. */
export function markAt(path: string, areas: readonly string[]): readonly Mark[] {
  return certainPath(dirname(path), areas).flatMap((folder): readonly Mark[] => {
    const real = join(folder, basename(path));
    // Another command may close the folder at any time.
    const stats = certain(real, areas, (one) => lstatSync(one, { bigint: true }));
    return stats === undefined ? [] : [{ path: real, kind: "obeyed", ...stateIn(stats) }];
  });
}

function stateIn(stats: BigIntStats): Pick<Mark, "identity" | "changed"> {
  return { identity: identityOf(stats), changed: stats.ctimeMs };
}

/** A time before everything that is made or changed from now on, by the clock of a file system. */
export function beforeNow(): number {
  return systemClock.now() - Number(RACY_MS);
}

/**
 * The identity for what is compared over a longer time: a new file may have the inode of one that was removed. It also changes if an
 * overlay file system copies a file.
 */
export function instanceAt(path: string): string | undefined {
  const stats = statsOf(path);
  return stats === undefined ? undefined : instanceOf(stats);
}

function instanceOf(stats: BigIntStats): string {
  return `${identityOf(stats)}:${stats.birthtimeNs}`;
}

/** The folders and links in a folder whose names are no text. No search enters them, so they are obeyed as a whole. */
function withoutText(folder: string): readonly Mark[] {
  const entries = withFallback(() => readdirSync(folder, { withFileTypes: true, encoding: "buffer" }), []);
  const hiding = entries.filter((one) => !isUtf8(one.name) && (one.isDirectory() || one.isSymbolicLink()));
  return hiding.flatMap(({ name }) => {
    const stats = statsOf(Buffer.concat([Buffer.from(join(folder, "/")), name]));
    const path = join(folder, name.toString("utf8"));
    // No path leads there by which it could be mounted, so a command can remove it.
    return stats === undefined
      ? []
      : [{ path, kind: "obeyed", ...stateIn(stats), identity: instanceOf(stats), bytes: name }];
  });
}

function isRacy({ ctimeMs }: BigIntStats): boolean {
  return BigInt(systemClock.now()) - ctimeMs < RACY_MS;
}

function contentsOf(folder: string): Pick<KnownFolder, "marks" | "folders"> {
  const entries = entriesIn(folder);
  const names = new Set(entries.map(({ name }) => name));
  // A bare repository is recognised by its content. Most of it may be in the folder that `commondir` names.
  const isRepository = names.has("HEAD") && (names.has("commondir") || (names.has("objects") && names.has("refs")));
  const isPart = (name: string): boolean => isRepository && OF_REPOSITORY.has(name);
  const isObeyed = (name: string): boolean => OBEYED.test(name) || isPart(name);
  const named = entries.flatMap((entry): readonly Mark[] => {
    const isChannel = entry.isSocket() || entry.isFIFO();
    if (!isChannel && !isObeyed(entry.name)) return [];
    const path = join(folder, entry.name);
    const stats = statsOf(path);
    if (stats === undefined) return [];
    const mark = { path, kind: isChannel ? "channel" : "obeyed", ...stateIn(stats) } as const;
    return [isPart(entry.name) ? { ...mark, head: join(folder, "HEAD") } : mark];
  });
  return {
    marks: entries.some(({ name }) => name.includes(NO_TEXT)) ? [...named, ...withoutText(folder)] : named,
    folders: entries
      .filter((entry) => entry.isDirectory() && entry.name !== "node_modules" && !isObeyed(entry.name))
      .map(({ name }) => join(folder, name)),
  };
}
