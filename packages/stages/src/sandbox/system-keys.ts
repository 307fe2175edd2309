import { type Dirent, lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { systemCode } from "../tools/results.ts";

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
      const mode = lstatSync(path, { throwIfNoEntry: false })?.mode ?? 0;
      if (!entry.isDirectory()) {
        if ((mode & 0o004) === 0 || KEYS.test(entry.name) || !entry.isFile()) files.push(path);
      } else if ((mode & 0o005) !== 0o005 || path === "/etc/ssl/private") folders.push(path);
      else queue.push(path);
    }
  }
  return { files, folders };
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
