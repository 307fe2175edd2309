import { accessSync, constants, lstatSync } from "node:fs";
import { join } from "node:path";
import { entriesIn } from "../tools/files/paths.ts";
import { withFallback } from "../tools/files/results.ts";

/** Secrets of the system that the wall masks in a visible folder. */
export interface SystemKeys {
  readonly files: readonly string[];
  readonly folders: readonly string[];
}

/** Secret by name, whatever the permissions are. */
const KEYS = /^(?:g?shadow-?|ssh_host_.*_key|.*\.key|.*\.keytab|opasswd)$/;

/** Finds what not every user may read: the superuser's commands must not read it either. */
export function systemKeys(): SystemKeys {
  const files: string[] = [];
  const folders: string[] = [];
  const queue = ["/etc"];
  for (let at = 0; at < queue.length; at += 1) {
    const parent = queue[at] ?? "";
    for (const entry of entriesIn(parent)) {
      if (entry.isSymbolicLink()) continue;
      const path = join(parent, entry.name);
      const { mode = 0, size = 0 } = lstatSync(path, { throwIfNoEntry: false }) ?? {};
      if (entry.isDirectory()) {
        const isClosed = (mode & 0o005) !== 0o005 || path === "/etc/ssl/private";
        if (!isClosed) queue.push(path);
        else if (isReadable(path)) folders.push(path);
        continue;
      }
      const isKey = ((mode & 0o004) === 0 || KEYS.test(entry.name)) && size > 0;
      if ((isKey && isReadable(path)) || !entry.isFile()) files.push(path);
    }
  }
  return { files, folders };
}

/** Only readable files are masked, since each mount costs time at every command. */
function isReadable(path: string): boolean {
  return withFallback(() => {
    accessSync(path, constants.R_OK);
    return true;
  }, false);
}
