import { randomUUID } from "node:crypto";
import { chmodSync, lstatSync, mkdirSync, readlinkSync, renameSync } from "node:fs";
import { cp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { isSluiceError } from "@sluice/core";
import { messageOf } from "@sluice/core/runtime";
import { certain, openAgain, openAllAgain } from "../tools/files/closed-folders.ts";
import { withFolder } from "../tools/files/open.ts";
import { contains, specialKind } from "../tools/files/paths.ts";
import { fault, systemCode, withFallback } from "../tools/files/results.ts";
import type { SandboxedExit } from "../tools/sandbox.ts";
import type { Mark } from "./folder-marks.ts";
import { obeyedPaths } from "./repository.ts";

/** The paths that programs of the host would obey, as they are before a call. */
export interface ObeyedBefore {
  readonly marks: Set<string>;
  /** State by path: absent (""), a link with its target, or anything else, which the wall protects. */
  readonly paths: Map<string, string>;
  /** What the call may write. */
  readonly areas: readonly string[];
}

/** Paths that a call must not create, in addition to those that are obeyed for their name. */
export interface WatchedPaths {
  /** The repository's folders, if it is writable. */
  readonly repository: readonly string[];
  /** Paths that the plan hides or protects. */
  readonly planned: readonly string[];
  /** What the call may write. */
  readonly areas: readonly string[];
}

/** Those of all calls that are active in this process. */
const active = new Set<ObeyedBefore>();

/** Begins a call, which `moveAway` ends. Throws `sandbox_failed` if a path cannot be examined. */
export function obeyedBefore(marks: readonly Mark[], watched: WatchedPaths): ObeyedBefore {
  const { areas } = watched;
  const paths = new Map(pathsOf(watched).map((path) => [path, stateOf(path, areas)]));
  const before = { marks: new Set(marks.filter(isObeyed).map(({ identity }) => identity)), paths, areas };
  active.add(before);
  return before;
}

/** What there is after a call. */
export interface ObeyedAfter {
  readonly watched: () => WatchedPaths;
  /** Finds the marks. */
  readonly search: () => Promise<readonly Mark[]>;
  /** The folder of the run store, if it is on disk. */
  readonly store: string | undefined;
  /** Receives what cannot be moved: why, by path. */
  readonly left: Map<string, string>;
}

/**
 * Moves every new obeyed path out of the workspace; those that existed before are mounted and cannot change. Throws
 * `sandbox_failed` if one could not be moved, once all were tried.
 */
export async function moveAway(
  before: ObeyedBefore,
  { watched, search, store, left }: ObeyedAfter,
): Promise<SandboxedExit["movedAway"]> {
  active.delete(before);
  const folder = join(store === undefined ? tmpdir() : dirname(store), "moved-away", randomUUID());
  const movedAway: { path: string; to: string }[] = [];
  const take = async (found: readonly Found[], isNew: (path: string) => boolean): Promise<void> => {
    for (const { path, identity } of found) {
      // A name that no program obeys, and short enough for every system.
      const name = basename(path).replace(/^\.+/, "").slice(0, MOST_OF_NAME);
      const to = join(folder, `${movedAway.length + left.size + 1}-${name}.moved`);
      try {
        if (!isNew(path) || !(await move(path, to))) continue;
        movedAway.push({ path, to });
        for (const other of active) forget(other, path, identity);
      } catch (thrown) {
        // The others are moved all the same.
        left.set(path, systemCode(thrown) ?? messageOf(thrown));
      }
    }
  };
  const isChanged = (path: string): boolean => {
    const now = stateOf(path, before.areas);
    return now !== "" && now !== (before.paths.get(path) ?? "");
  };
  // First these, which depend on no search. A link among them may have been replaced by a folder.
  await take([...before.paths.keys()].map(atPath), isChanged);
  const isMade = (mark: Mark): boolean => isObeyed(mark) && !before.marks.has(mark.identity);
  try {
    await take((await search()).filter(isMade), () => true);
  } finally {
    const added = pathsOf(watched()).filter((path) => !before.paths.has(path));
    await take(added.map(atPath), isChanged);
  }
  refuseLeft(left);
  return movedAway;
}

/** A path at which something is, and what it is if that is known. */
type Found = Pick<Mark, "path"> & Partial<Pick<Mark, "identity">>;

function atPath(path: string): Found {
  return { path };
}

/** What was moved away counts as not there before for another call, which may have begun while it was there. */
function forget({ marks, paths }: ObeyedBefore, path: string, identity: string | undefined): void {
  for (const known of paths.keys()) if (contains(path, known)) paths.set(known, "");
  if (identity !== undefined) marks.delete(identity);
}

/** Throws `sandbox_failed` while something is there that could not be moved away. */
export function refuseLeft(left: Map<string, string>): void {
  for (const path of left.keys()) if (!mayBeThere(path)) left.delete(path);
  if (left.size === 0) return;
  const named = [...left].map(([path, why]) => `${path} (${why})`).join(", ");
  const message = `A command left what programs of this machine would obey, and it could not be moved away: ${named}. Nothing runs in the sandbox until it is removed.`;
  throw fault("sandbox_failed", message, { paths: [...left.keys()] });
}

/** Characters of a name that are kept; each has at most three bytes. */
const MOST_OF_NAME = 60;

/** A folder on the way that cannot be searched proves nothing. */
function mayBeThere(path: string): boolean {
  return withFallback(() => lstatSync(path, { throwIfNoEntry: false }) !== undefined, true);
}

/** Whether a mark is something that programs of the host obey. */
export function isObeyed({ kind }: Mark): boolean {
  return kind === "obeyed";
}

function pathsOf({ repository, planned, areas }: WatchedPaths): readonly string[] {
  return [...obeyedPaths(repository, areas), ...planned];
}

function stateOf(path: string, areas: readonly string[]): string {
  const state = certain(path, areas, () => {
    const stats = lstatSync(path);
    return stats.isSymbolicLink() ? `a link to ${readlinkSync(path)}` : "present";
  });
  return state ?? "";
}

/** Returns false if the path is already gone, moved together with its folder, or lies behind a link, which is moved itself. */
async function move(path: string, to: string): Promise<boolean> {
  const holder = dirname(path);
  const mode = openAgain(holder);
  try {
    // Another process in the sandbox could turn the folder into a link to a place outside of the workspace.
    return await withFolder(holder, async (folder) => {
      try {
        mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
        // A folder that its owner may not change cannot be moved into another one.
        openAgain(path);
        return await take(folder.at(basename(path)), to, path);
      } finally {
        if (mode !== undefined) chmodSync(folder.path, mode);
      }
    });
  } catch (thrown) {
    if (isSluiceError(thrown) && NOT_HERE.has(thrown.code)) return false;
    throw thrown;
  }
}

/** The codes of a folder that is not what its path says. */
const NOT_HERE: ReadonlySet<string> = new Set(["not_found", "path_changed", "not_a_folder"]);

async function take(from: string, to: string, path: string): Promise<boolean> {
  try {
    renameSync(from, to);
  } catch (thrown) {
    const code = systemCode(thrown);
    if (code === "ENOENT") return false;
    // Another disk: copy instead.
    if (code !== "EXDEV") throw thrown;
    openAllAgain(path);
    // Not `cpSync` and `rmSync`, which abort the process at a path that is too long.
    await cp(from, to, { recursive: true, verbatimSymlinks: true, filter: (part) => !isSpecial(part) });
    await rm(from, { recursive: true });
  }
  return true;
}

/** Whether a path is a pipe, a socket or a device, which cannot be copied. */
function isSpecial(path: string): boolean {
  return specialKind(lstatSync(path)) !== undefined;
}
