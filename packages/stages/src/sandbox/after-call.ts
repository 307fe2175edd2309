import { randomUUID } from "node:crypto";
import { cpSync, lstatSync, mkdirSync, readlinkSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { messageOf } from "@sluice/core";
import { fault, systemCode } from "../tools/files/results.ts";
import type { Mark } from "./folder-marks.ts";
import { obeyedPaths } from "./repository.ts";

/** Something that a command left, and where it was moved to. */
export interface MovedAway {
  readonly path: string;
  readonly to: string;
}

/** What of the workspace a later program of the host would obey, as it is before a call. */
export interface ObeyedBefore {
  readonly marks: ReadonlySet<string>;
  /** What is at each path of the repository: nothing, a link, or something that the wall keeps as it is. */
  readonly paths: ReadonlyMap<string, string>;
}

/** Which paths a call must not bring about, beside those that are obeyed by their name. */
export interface WatchedPaths {
  /** Folders of the repository, where it is written. */
  readonly repository: readonly string[];
  /** Paths of the plan that are to be absent, or are never written. */
  readonly planned: readonly string[];
}

export function obeyedBefore(marks: readonly Mark[], places: WatchedPaths): ObeyedBefore {
  const paths = pathsOf(places).map((path) => [path, whatIsAt(path)] as const);
  return { marks: new Set(marks.filter(isObeyed).map(({ identity }) => identity)), paths: new Map(paths) };
}

/**
 * Moves away whatever is new since then. Of what was there before nothing could be changed: each is a mount of its own. Throws
 * `wall_failed` when something cannot be moved.
 */
export function moveAway(
  before: ObeyedBefore,
  marks: readonly Mark[],
  places: WatchedPaths,
  store: string | undefined,
): readonly MovedAway[] {
  const isNew = (path: string): boolean => {
    const now = whatIsAt(path);
    return now !== "" && now !== (before.paths.get(path) ?? "");
  };
  const made = marks.filter((mark) => isObeyed(mark) && !before.marks.has(mark.identity)).map(({ path }) => path);
  const paths = new Set([...made, ...pathsOf(places).filter(isNew)]);
  if (paths.size === 0) return [];
  const folder = join(store === undefined ? tmpdir() : dirname(store), "moved-away", randomUUID());
  return [...paths].flatMap((path, at) => {
    // Under a name that nothing obeys.
    const to = join(folder, `${at + 1}-${basename(path).replace(/^\.+/, "")}.moved`);
    return move(path, to) ? [{ path, to }] : [];
  });
}

function isObeyed({ kind }: Mark): boolean {
  return kind === "obeyed";
}

function pathsOf({ repository, planned }: WatchedPaths): readonly string[] {
  return [...obeyedPaths(repository), ...planned];
}

function whatIsAt(path: string): string {
  try {
    const stats = lstatSync(path);
    return stats.isSymbolicLink() ? `a link to ${readlinkSync(path)}` : "there";
  } catch (thrown) {
    if (systemCode(thrown) === undefined) throw thrown;
    return "";
  }
}

/** False when it is gone already: with the folder that it is in. */
function move(path: string, to: string): boolean {
  try {
    mkdirSync(dirname(to), { recursive: true, mode: 0o700 });
    renameSync(path, to);
    return true;
  } catch (thrown) {
    const code = systemCode(thrown);
    if (code === "ENOENT") return false;
    try {
      // Another disk.
      if (code !== "EXDEV") throw thrown;
      cpSync(path, to, { recursive: true, verbatimSymlinks: true });
      rmSync(path, { recursive: true });
      return true;
    } catch (cause) {
      const message = `The command ran and left ${path}, which programs of this machine would obey. It could not be moved away (${messageOf(cause)}): remove it before anything else is run here.`;
      throw fault("wall_failed", message, { path });
    }
  }
}
