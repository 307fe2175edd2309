import { existsSync, readdirSync, statfsSync } from "node:fs";
import { join, resolve } from "node:path";
import { SluiceError } from "@sluice/core";
import { messageOf } from "@sluice/core/runtime";
import { storeFault } from "../faults.ts";
import { checkFolder, nearestExisting } from "../folder.ts";
import { machineDigest, mountType, readMounts } from "../machine.ts";
import { openForReading } from "../opening.ts";
import { createOwners } from "../owners.ts";
import { STORE_VERSION, text } from "../schema.ts";

/** Facts about a store, or about a folder for a new one. */
export interface StoreInspection {
  /** Absolute path. */
  readonly folder: string;
  /** Whether it contains a store. */
  readonly exists: boolean;
  /** Why it cannot store runs: one of the errors of `openJournalStore`. */
  readonly fault?: SluiceError;
  /** The format version of a readable store. */
  readonly version?: number;
  /** Whether a readable store belongs to this machine. */
  readonly ownMachine?: boolean;
  /** The number of processes that own runs of it now. */
  readonly liveOwners: number;
  /** Its file system, if known. */
  readonly filesystem?: string;
  readonly freeBytes: number;
}

/** Inspects the store in `folder` without changing anything. */
export function inspectSqliteStore(folder: string): StoreInspection {
  const wanted = resolve(folder);
  const existing = nearestExisting(wanted);
  const { bavail, bsize } = statfsSync(existing);
  const mounts = readMounts();
  const filesystem = mounts === undefined ? undefined : mountType(existing, mounts);
  const facts = {
    folder: wanted,
    freeBytes: bavail * bsize,
    ...(filesystem === undefined ? {} : { filesystem }),
  };
  try {
    if (checkFolder(wanted) === undefined) return { ...facts, exists: false, liveOwners: 0 };
    return { ...facts, exists: true, ...insideOf(wanted) };
  } catch (thrown) {
    const fault = asFault(thrown, wanted);
    return { ...facts, exists: existsSync(join(wanted, "journal.db")), liveOwners: 0, fault };
  }
}

function insideOf(wanted: string): Pick<StoreInspection, "version" | "ownMachine" | "liveOwners"> {
  const { db, folder } = openForReading(wanted);
  try {
    const row = db.prepare("SELECT machine FROM store").get();
    const owners = createOwners(folder.owners);
    const ids = existsSync(folder.owners) ? readdirSync(folder.owners).map((name) => name.replace(/\.db$/, "")) : [];
    return {
      version: STORE_VERSION,
      ownMachine: row !== undefined && text(row, "machine") === machineDigest(undefined, { make: false }),
      liveOwners: ids.filter((id) => owners.isLive(id)).length,
    };
  } finally {
    db.close();
  }
}

function asFault(thrown: unknown, folder: string): SluiceError {
  const fault = storeFault(thrown, folder);
  if (fault instanceof SluiceError) return fault;
  return new SluiceError("Host", "store_io", `the run store ${folder} cannot be inspected: ${messageOf(fault)}`, {
    cause: fault,
  });
}
