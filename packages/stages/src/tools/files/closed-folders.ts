import { chmodSync, closeSync, constants, fstatSync, lstatSync, openSync, readlinkSync, type Stats } from "node:fs";
import { withFallback } from "./results.ts";

/** The owner's rights to list, search and change a folder. */
const ALL_RIGHTS = 0o700;
/** `O_PATH` of Linux, which Node does not name: it also opens a folder that may not be read. */
const O_PATH = 0o10000000;

/**
 * Gives this user all rights to a folder of its own, which a command may have taken away. Returns the mode that the folder had;
 * undefined if nothing was changed.
 */
export function openAgain(real: string): number | undefined {
  const change = (place: string, stats: Stats): number | undefined => {
    const isOwn = stats.isDirectory() && stats.uid === process.getuid?.();
    if (!isOwn || (stats.mode & ALL_RIGHTS) === ALL_RIGHTS) return undefined;
    chmodSync(place, stats.mode | ALL_RIGHTS);
    return stats.mode;
  };
  return withFallback(() => {
    if (process.platform !== "linux") return change(real, lstatSync(real));
    // Through a descriptor, since another process could turn the path into a link.
    const fd = openSync(real, O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW);
    try {
      const place = `/proc/self/fd/${fd}`;
      return readlinkSync(place) === real ? change(place, fstatSync(fd)) : undefined;
    } finally {
      closeSync(fd);
    }
  }, undefined);
}
