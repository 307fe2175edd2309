import { randomBytes } from "node:crypto";
import { accessSync, chmodSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { isBusy, isUnopenable, systemCode } from "./faults.ts";

/**
 * Who owns runs: a kernel lock each, on a file of its own, that goes with its process and stays while it is stopped.
 * SQLite keeps the locks of one process in one book, so several handles here do not drop each other's. Anything else
 * that opens and closes such a file in this process drops the lock: only node:sqlite may touch them.
 */
export interface Owners {
  readonly id: string;
  /** What people are shown. */
  readonly label: string;
  /** Takes this owner's lock, the first time it is needed. */
  hold(): void;
  /** Whether an owner's process is there. */
  readonly isLive: (ownerId: string) => boolean;
  /** Whether anybody's process is there, this one's included. */
  anyLive(): boolean;
  /** Removes what a dead owner left. */
  bury(ownerId: string): void;
  /** Removes what all dead owners left. */
  sweep(): void;
  /** Lets the lock go. */
  close(): void;
}

/** A look at another owner's lock takes microseconds but is a lock itself: before somebody counts as alive, look twice. */
const SECOND_LOOK_MS = 10;
const OWNER_ID = /^[0-9]+-[0-9a-f]{24}$/;

export function createOwners(folder: string): Owners {
  const id = `${process.pid}-${randomBytes(12).toString("hex")}`;
  const fileOf = (ownerId: string): string => join(folder, `${ownerId}.db`);
  let held: DatabaseSync | undefined;

  const owners: Owners = {
    id,
    label: `process ${process.pid}`,
    hold() {
      while (held === undefined) held = lock(fileOf(id));
    },
    isLive(ownerId) {
      if (ownerId === id) return held !== undefined;
      if (!OWNER_ID.test(ownerId)) return false;
      const file = fileOf(ownerId);
      return isLocked(file, 0) && isLocked(file, SECOND_LOOK_MS);
    },
    anyLive: () => readdirSync(folder).some((name) => owners.isLive(name.replace(/\.db$/, ""))),
    bury(ownerId) {
      if (OWNER_ID.test(ownerId)) rmSync(fileOf(ownerId), { force: true });
    },
    sweep() {
      for (const name of readdirSync(folder)) {
        if (OWNER_ID.test(name.replace(/\.db$/, "")) && name !== `${id}.db`) removeIfFree(join(folder, name));
      }
    },
    close() {
      held?.close();
      if (held !== undefined) owners.bury(id);
      held = undefined;
    },
  };
  return owners;
}

/** Locks a new owner file; undefined when a sweeper removed it before the lock was there. */
function lock(file: string): DatabaseSync | undefined {
  const db = new DatabaseSync(file, { timeout: SECOND_LOOK_MS });
  try {
    // Without a rollback file there is nothing beside the lock that a kill could leave behind.
    db.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
    if (isThere(file)) {
      chmodSync(file, 0o600);
      return db;
    }
  } catch (thrown) {
    db.close();
    throw thrown;
  }
  db.close();
  return undefined;
}

/** False only for a file that is certainly not there: what this user may not see counts as there. */
function isThere(file: string): boolean {
  try {
    accessSync(file);
    return true;
  } catch (thrown) {
    return systemCode(thrown) !== "ENOENT";
  }
}

/** Reading needs a shared lock, which the owner's refuses; two onlookers do not disturb each other. */
function isLocked(file: string, patienceMs: number): boolean {
  if (!isThere(file)) return false;
  let db: DatabaseSync | undefined;
  try {
    db = new DatabaseSync(file, { readOnly: true, timeout: patienceMs });
    db.prepare("SELECT count(*) FROM sqlite_schema").get();
    return false;
  } catch (thrown) {
    if (isBusy(thrown)) return true;
    // Removed in between: gone. There but not readable, as another user's: nobody may take its runs.
    if (isUnopenable(thrown)) return isThere(file);
    throw thrown;
  } finally {
    db?.close();
  }
}

/** Removes an owner file under its own lock, so that an owner just taking it sees that it is gone. */
function removeIfFree(file: string): void {
  const url = pathToFileURL(file);
  url.search = "mode=rw";
  let db: DatabaseSync | undefined;
  try {
    db = new DatabaseSync(url, { timeout: 0 });
    db.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
    rmSync(file, { force: true });
  } catch (thrown) {
    // Alive, or another sweeper's, or not ours to remove (on Windows nothing open can be): all of them stay.
    if (!isBusy(thrown) && !isUnopenable(thrown) && !["EPERM", "EACCES", "EBUSY"].includes(systemCode(thrown) ?? ""))
      throw thrown;
  } finally {
    db?.close();
  }
}
