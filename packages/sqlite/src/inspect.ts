import { existsSync, readdirSync, statfsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { messageOf, SluiceError } from "@sluice/core";
import { storeFault } from "./faults.ts";
import { checkFolder } from "./folder.ts";
import { machineDigest, mountType, readMounts } from "./machine.ts";
import { openForReading } from "./opening.ts";
import { createOwners } from "./owners.ts";
import { STORE_VERSION, text } from "./schema.ts";

/** What can be known of a store, or of the place where one would be made, without writing to it. */
export interface StoreInspection {
  /** Absolute, as it was named. */
  readonly folder: string;
  /** Whether a store is there. */
  readonly exists: boolean;
  /** Why runs cannot be kept there: one of the errors of `openJournalStore`. */
  readonly fault?: SluiceError;
  /** The format's version; only of a store that could be read. */
  readonly version?: number;
  /** Whether it belongs to this machine; only of a store that could be read. */
  readonly ownMachine?: boolean;
  /** Processes that work on runs of it right now. */
  readonly liveOwners: number;
  /** The file system it lies on, where the system tells. */
  readonly filesystem?: string;
  readonly freeBytes: number;
}

/** Looks at the store in `folder`. Makes and changes nothing. */
export function inspectSqliteStore(folder: string): StoreInspection {
  const wanted = resolve(folder);
  const there = nearestFolder(wanted);
  const { bavail, bsize } = statfsSync(there);
  const mounts = readMounts();
  const filesystem = mounts === undefined ? undefined : mountType(there, mounts);
  const place = {
    folder: wanted,
    freeBytes: bavail * bsize,
    ...(filesystem === undefined ? {} : { filesystem }),
  };
  try {
    if (checkFolder(wanted) === undefined) return { ...place, exists: false, liveOwners: 0 };
    return { ...place, exists: true, ...insideOf(wanted) };
  } catch (thrown) {
    const fault = asFault(thrown, wanted);
    return { ...place, exists: existsSync(join(wanted, "journal.db")), liveOwners: 0, fault };
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
  return new SluiceError("Host", "store_io", `the run store ${folder} cannot be looked at: ${messageOf(fault)}`, {
    cause: fault,
  });
}

function nearestFolder(path: string): string {
  let at = path;
  while (!existsSync(at) && dirname(at) !== at) at = dirname(at);
  return at;
}
