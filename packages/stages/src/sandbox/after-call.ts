import { randomUUID } from "node:crypto";
import { cpSync, lstatSync, mkdirSync, readlinkSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { isSluiceError } from "@sluice/core";
import { messageOf } from "@sluice/core/runtime";
import { withFolder } from "../tools/files/open.ts";
import { fault, systemCode, withFallback } from "../tools/files/results.ts";
import type { SandboxedExit } from "../tools/sandbox.ts";
import type { Mark } from "./folder-marks.ts";
import { obeyedPaths } from "./repository.ts";

/** The paths that programs of the host would obey, as they are before a call. */
export interface ObeyedBefore {
  readonly marks: ReadonlySet<string>;
  /** State by path: absent (""), a link with its target, or anything else, which the wall protects. */
  readonly paths: ReadonlyMap<string, string>;
}
/** Paths that a call must not create, in addition to those that are obeyed for their name. */
export interface WatchedPaths {
  /** The repository's folders, if it is writable. */
  readonly repository: readonly string[];
  /** Paths that the plan hides or protects. */
  readonly planned: readonly string[];
}

export function obeyedBefore(marks: readonly Mark[], watched: WatchedPaths): ObeyedBefore {
  const paths = pathsOf(watched).map((path) => [path, stateOf(path)] as const);
  return { marks: new Set(marks.filter(isObeyed).map(({ identity }) => identity)), paths: new Map(paths) };
}

/** What there is after a call. */
export interface ObeyedAfter {
  readonly watched: WatchedPaths;
  /** Finds the marks. */
  readonly search: () => Promise<readonly Mark[]>;
  /** The folder of the run store, if it is on disk. */
  readonly store: string | undefined;
}

/**
 * Moves every new obeyed path out of the workspace; those that existed before are mounted and cannot change. Throws
 * `sandbox_failed` if one cannot be moved.
 */
export async function moveAway(
  before: ObeyedBefore,
  { watched, search, store }: ObeyedAfter,
): Promise<SandboxedExit["movedAway"]> {
  const folder = join(store === undefined ? tmpdir() : dirname(store), "moved-away", randomUUID());
  const movedAway: { path: string; to: string }[] = [];
  const take = async (paths: readonly string[]): Promise<void> => {
    for (const path of paths) {
      // A name that no program obeys.
      const to = join(folder, `${movedAway.length + 1}-${basename(path).replace(/^\.+/, "")}.moved`);
      if (await move(path, to)) movedAway.push({ path, to });
    }
  };
  const isNew = (path: string): boolean => {
    const now = stateOf(path);
    return now !== "" && now !== (before.paths.get(path) ?? "");
  };
  // First these, which do not depend on the search. Also those of before: a link among them may have been replaced by a folder.
  await take([...before.paths.keys(), ...pathsOf(watched)].filter(isNew));
  const isMade = (mark: Mark): boolean => isObeyed(mark) && !before.marks.has(mark.identity);
  await take((await search()).filter(isMade).map(({ path }) => path));
  return movedAway;
}

function isObeyed({ kind }: Mark): boolean {
  return kind === "obeyed";
}

function pathsOf({ repository, planned }: WatchedPaths): readonly string[] {
  return [...obeyedPaths(repository), ...planned];
}

function stateOf(path: string): string {
  return withFallback(() => {
    const stats = lstatSync(path);
    return stats.isSymbolicLink() ? `a link to ${readlinkSync(path)}` : "present";
  }, "");
}

/** Returns false if the path is already gone, moved together with its folder, or lies behind a link, which is moved itself. */
async function move(path: string, to: string): Promise<boolean> {
  try {
    // Another process in the sandbox could turn the folder into a link to a place outside of the workspace.
    return await withFolder(dirname(path), async (folder) => {
      mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
      return take(folder.at(basename(path)), to);
    });
  } catch (thrown) {
    if (isSluiceError(thrown) && NOT_HERE.has(thrown.code)) return false;
    const message = `The command ran and left ${path}, which programs of this machine would obey. It could not be moved away (${messageOf(thrown)}). Remove it before anything else runs here.`;
    throw fault("sandbox_failed", message, { path });
  }
}

/** The codes of a folder that is not what its path says. */
const NOT_HERE: ReadonlySet<string> = new Set(["not_found", "path_changed", "not_a_folder"]);

function take(from: string, to: string): boolean {
  try {
    renameSync(from, to);
  } catch (thrown) {
    const code = systemCode(thrown);
    if (code === "ENOENT") return false;
    // Another disk: copy instead.
    if (code !== "EXDEV") throw thrown;
    cpSync(from, to, { recursive: true, verbatimSymlinks: true });
    rmSync(from, { recursive: true });
  }
  return true;
}
