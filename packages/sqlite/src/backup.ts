import { fsyncSync, mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import type { Blobs } from "./blobs.ts";
import { storeFault } from "./faults.ts";
import { syncFolder, withFile } from "./folder.ts";

/** Copies a store, which may be in use, to a new folder. */
export function backUp(db: DatabaseSync, blobs: Blobs, folder: string, readOnly: boolean): void {
  const target = resolve(folder);
  const journal = join(target, "journal.db");
  try {
    mkdirSync(target, { mode: 0o700 });
    mkdirSync(join(target, "blobs"), { mode: 0o700 });
    // Before and after the rows, since runs may start or be pruned meanwhile.
    blobs.copyTo(join(target, "blobs"));
    // Created empty first, so that it is private from its first byte.
    withFile(journal, "wx", () => undefined);
    // A read-only connection may not write elsewhere either.
    if (readOnly) db.exec("PRAGMA query_only = OFF");
    try {
      db.prepare("VACUUM INTO ?").run(journal);
    } finally {
      if (readOnly) db.exec("PRAGMA query_only = ON");
    }
    blobs.copyTo(join(target, "blobs"));
    withFile(journal, "r+", fsyncSync);
    syncFolder(join(target, "blobs"));
    syncFolder(target);
  } catch (thrown) {
    throw storeFault(thrown, target);
  }
}
