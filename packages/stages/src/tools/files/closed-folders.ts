import { chmodSync, closeSync, constants, fstatSync, lstatSync, openSync, readlinkSync, type Stats } from "node:fs";
import { join } from "node:path";
import { entriesIn } from "./paths.ts";
import { withFallback } from "./results.ts";

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

/** The same for everything at and below a path. */
export function openAllAgain(real: string): void {
  openAgain(real);
  for (const entry of entriesIn(real)) openAllAgain(join(real, entry.name));
}
