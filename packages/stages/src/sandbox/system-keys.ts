import { accessSync, constants, type Dirent, lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { systemCode } from "../tools/files/results.ts";

/** What a wall does not show of a folder that it shows. */
export interface SystemKeys {
  readonly files: readonly string[];
  readonly folders: readonly string[];
}

/** Kept from everybody by their name, whatever their permissions say. */
const KEYS = /^(?:g?shadow-?|ssh_host_.*_key|.*\.key|.*\.keytab|opasswd)$/;

/** What not every user of the machine may read is a key to those who may, such as the superuser. */
export function systemKeys(folder = "/etc"): SystemKeys {
  const files: string[] = [];
  const folders: string[] = [];
  const queue = [folder];
  for (let at = 0; at < queue.length; at += 1) {
    const parent = queue[at] ?? folder;
    for (const entry of entriesOf(parent)) {
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

/** Each mount costs time at every command: what this process cannot read, its commands cannot either. */
function isReadable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK);
    return true;
  } catch (thrown) {
    if (systemCode(thrown) === undefined) throw thrown;
    return false;
  }
}

function entriesOf(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch (thrown) {
    // Not to be read by this process, so neither by its commands.
    if (systemCode(thrown) === undefined) throw thrown;
    return [];
  }
}
