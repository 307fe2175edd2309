import { closeSync, fsyncSync, mkdirSync, openSync } from "node:fs";
import { join, resolve } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import type { Blobs } from "./blobs.ts";
import { storeFault } from "./faults.ts";
import { syncFolder } from "./folder.ts";

/** Writes a copy of a store that opens as one, while the store is in use; the folder must not be there yet. */
export function backUp(db: DatabaseSync, blobs: Blobs, folder: string, readOnly: boolean): void {
  const target = resolve(folder);
  const journal = join(target, "journal.db");
  try {
    mkdirSync(target, { mode: 0o700 });
    mkdirSync(join(target, "blobs"), { mode: 0o700 });
    // Before the rows as well as after them: runs may begin and runs may be pruned meanwhile.
    blobs.copyTo(join(target, "blobs"));
    // Made first and empty, so that it is private from its first byte.
    closeSync(openSync(journal, "wx", 0o600));
    // A connection that only looks may not write, not even elsewhere.
    if (readOnly) db.exec("PRAGMA query_only = OFF");
    try {
      db.prepare("VACUUM INTO ?").run(journal);
    } finally {
      if (readOnly) db.exec("PRAGMA query_only = ON");
    }
    blobs.copyTo(join(target, "blobs"));
    const handle = openSync(journal, "r+");
    fsyncSync(handle);
    closeSync(handle);
    syncFolder(join(target, "blobs"));
    syncFolder(target);
  } catch (thrown) {
    throw storeFault(thrown, target);
  }
}
