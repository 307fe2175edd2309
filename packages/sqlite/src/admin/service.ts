import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { isBusy, storeError, storeFault } from "../faults.ts";
import { findFolder, refuseLink } from "../folder.ts";
import { isLocked, lock, RECHECK_MS } from "../owners.ts";

/** The right of one process to wake the runs of a store; it ends with the process. */
export interface ServiceLock {
  release(): void;
}

const LOCK = "serve.db";
/** The lock's process, for messages. */
const PID = "serve.pid";

/**
 * Takes the lock of the process that serves the store in `folder`. A dead holder's lock is free. Throws Host `store_served` while
 * another process holds it.
 */
export function lockService(folder: string): ServiceLock {
  const { owners, root } = findFolder(folder);
  const [file, pid] = [join(owners, LOCK), join(owners, PID)];
  for (const path of [file, pid]) refuseLink(path);
  let held: DatabaseSync | undefined;
  try {
    while (held === undefined) held = lock(file);
  } catch (thrown) {
    if (!isBusy(thrown)) throw storeFault(thrown, file);
    const who = holderIn(pid);
    throw storeError("store_served", `${who} serves the run store ${root} already; one process at a time can`, {
      path: root,
    });
  }
  const taken = held;
  try {
    writeFileSync(pid, `${process.pid}\n`, { mode: 0o600 });
  } catch (thrown) {
    taken.close();
    throw storeFault(thrown, pid);
  }
  return { release: () => taken.close() };
}

/** The process that serves the store in `folder`, for display; undefined if none does. */
export function serviceOf(folder: string): string | undefined {
  const { owners } = findFolder(folder);
  const file = join(owners, LOCK);
  if (!existsSync(file)) return undefined;
  return isLocked(file, 0) && isLocked(file, RECHECK_MS) ? holderIn(join(owners, PID)) : undefined;
}

function holderIn(pid: string): string {
  const text = existsSync(pid) ? readFileSync(pid, "utf8").trim() : "";
  return /^\d{1,10}$/.test(text) ? `process ${text}` : "another process";
}
