import {
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readlinkSync,
  realpathSync,
  type Stats,
} from "node:fs";
import { dirname, sep } from "node:path";
import { contains, realPath } from "./paths.ts";
import { fault, systemCode, withFallback } from "./results.ts";

/** `O_PATH` of Linux, which Node does not name: it also opens a folder that may not be read. */
const O_PATH = 0o10000000;

/**
 * Gives this user back what a command may have taken away: all rights to a folder of its own, or the right to read a file of its
 * own. Returns the mode that the path had; undefined if nothing was changed.
 */
export function openAgain(real: string): number | undefined {
  const change = (place: string, stats: Stats): number | undefined => {
    const rights = rightsTo(stats);
    if (stats.uid !== process.getuid?.() || (stats.mode & rights) === rights) return undefined;
    chmodSync(place, stats.mode | rights);
    return stats.mode;
  };
  return withFallback(() => {
    if (process.platform !== "linux") return change(real, lstatSync(real));
    // Through a descriptor, since another process could turn the path into a link.
    const fd = openSync(real, O_PATH | constants.O_NOFOLLOW);
    try {
      const place = `/proc/self/fd/${fd}`;
      return readlinkSync(place) === real ? change(place, fstatSync(fd)) : undefined;
    } finally {
      closeSync(fd);
    }
  }, undefined);
}

/** The rights of an owner that listing, searching and changing a folder, or reading a file, takes. */
function rightsTo(stats: Stats): number {
  if (stats.isDirectory()) return 0o700;
  return stats.isFile() ? 0o400 : 0;
}

/** What the system says of a path at which nothing is. */
const NOTHING: ReadonlySet<string | undefined> = new Set(["ENOENT", "ENOTDIR", "ELOOP"]);
/** NAME_MAX of Linux and macOS. */
const MOST_NAME_BYTES = 255;

/**
 * What `look` finds at a path of which a sandbox has to know whether it is there; undefined if nothing is. Folders of this user in one
 * of the areas, in which a command may write, are opened on the way. Throws `sandbox_failed` if there is no knowing.
 */
export function certain<T>(path: string, areas: readonly string[], look: (path: string) => T): T | undefined {
  for (let left = path.split(sep).length; ; left -= 1) {
    try {
      return look(path);
    } catch (thrown) {
      const code = systemCode(thrown);
      if (NOTHING.has(code) || (code === "ENAMETOOLONG" && hasLongName(path))) return undefined;
      if (code === undefined) throw thrown;
      const closed = reachable(path);
      // What a command can neither see nor open needs no protection from it.
      if (code === "EACCES" && !areas.some((area) => contains(area, closed))) return undefined;
      if (left > 0 && code === "EACCES" && openAgain(closed) !== undefined) continue;
      // The path itself may be text of a settings file.
      const message = `The sandbox cannot protect what is in ${closed}, which cannot be examined (${code}). No command runs in the sandbox until that folder can be read (chmod u+rwx) or is gone.`;
      throw fault("sandbox_failed", message, { path: closed });
    }
  }
}

/** Whether no file system can hold one of the names. */
function hasLongName(path: string): boolean {
  return path.split(sep).some((name) => Buffer.byteLength(name) > MOST_NAME_BYTES);
}

/** The real path of something of which a sandbox has to know, as a list; empty if nothing is there. */
export function certainPath(path: string, areas: readonly string[]): readonly string[] {
  const real = certain(path, areas, (one) => realpathSync.native(one));
  return real === undefined ? [] : [real];
}

/** A path, or the nearest folder above it that can be reached: what is in the way. */
function reachable(path: string): string {
  return realPath(path) ?? reachable(dirname(path));
}
