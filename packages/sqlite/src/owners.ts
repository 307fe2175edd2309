import { randomBytes } from "node:crypto";
import { accessSync, chmodSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { isBusy, isUnopenable, systemCode } from "./faults.ts";

/**
 * Run owners. Each holds a kernel lock on its own file, which lasts as long as its process, even while that is stopped. SQLite
 * coordinates the locks of one process; any other code that closes such a file in it drops the lock, so only node:sqlite may
 * open them.
 */
export interface Owners {
  readonly id: string;
  /** For display. */
  readonly label: string;
  /** Takes this owner's lock on first use. */
  hold(): void;
  /** Whether an owner's process lives. */
  readonly isLive: (ownerId: string) => boolean;
  /** Whether any owner's process lives, including this one. */
  anyLive(): boolean;
  /** Removes a dead owner's file. */
  bury(ownerId: string): void;
  /** Removes the files of all dead owners. */
  sweep(): void;
  /** Releases the lock. */
  close(): void;
}

/** Checking a lock takes a lock for microseconds, so a busy one is checked again after this time. */
export const RECHECK_MS = 10;
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
      return isLocked(file, 0) && isLocked(file, RECHECK_MS);
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

/** Locks a file, which is made if it is missing; undefined if another process removed it before the lock. */
export function lock(file: string): DatabaseSync | undefined {
  const db = new DatabaseSync(file, { timeout: RECHECK_MS });
  try {
    // Without a rollback file, a killed process leaves only the lock file.
    db.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
    if (mayExist(file)) {
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

/** False only for a file that certainly does not exist. */
function mayExist(file: string): boolean {
  try {
    accessSync(file);
    return true;
  } catch (thrown) {
    return systemCode(thrown) !== "ENOENT";
  }
}

/** Tries to read, which needs a shared lock that only the owner's lock blocks. */
export function isLocked(file: string, patienceMs: number): boolean {
  if (!mayExist(file)) return false;
  let db: DatabaseSync | undefined;
  try {
    db = new DatabaseSync(file, { readOnly: true, timeout: patienceMs });
    db.prepare("SELECT count(*) FROM sqlite_schema").get();
    return false;
  } catch (thrown) {
    if (isBusy(thrown)) return true;
    // An unreadable file, such as another user's, counts as locked; a removed one does not.
    if (isUnopenable(thrown)) return mayExist(file);
    throw thrown;
  } finally {
    db?.close();
  }
}

/** Removes an owner file under its lock, so that an owner that is taking it notices. */
function removeIfFree(file: string): void {
  const url = pathToFileURL(file);
  url.search = "mode=rw";
  let db: DatabaseSync | undefined;
  try {
    db = new DatabaseSync(url, { timeout: 0 });
    db.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
    rmSync(file, { force: true });
  } catch (thrown) {
    // It is in use or not removable, as any open file is on Windows.
    if (!isBusy(thrown) && !isUnopenable(thrown) && !["EPERM", "EACCES", "EBUSY"].includes(systemCode(thrown) ?? ""))
      throw thrown;
  } finally {
    db?.close();
  }
}
