import { closeSync, fsyncSync, mkdirSync, openSync } from "node:fs";
import { join, resolve } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import type { Blobs } from "./blobs.ts";
import { storeFault } from "./faults.ts";
import { syncFolder } from "./folder.ts";

/** Writes a copy of a store that opens as one, while the store is in use; the folder must not be there yet. */
export function backUp(db: DatabaseSync, blobs: Blobs, folder: string): void {
  const target = resolve(folder);
  const journal = join(target, "journal.db");
  try {
    mkdirSync(target, { mode: 0o700 });
    mkdirSync(join(target, "blobs"), { mode: 0o700 });
    // Made first and empty, so that it is private from its first byte.
    closeSync(openSync(journal, "wx", 0o600));
    db.prepare("VACUUM INTO ?").run(journal);
    // After the rows, so that every blob they name is there.
    blobs.copyTo(join(target, "blobs"));
    const handle = openSync(journal, "r+");
    fsyncSync(handle);
    closeSync(handle);
    syncFolder(target);
  } catch (thrown) {
    throw storeFault(thrown, target);
  }
}
