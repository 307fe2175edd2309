import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { isBusy, storeError, storeFault } from "../faults.ts";
import { findFolder, refuseLink } from "../folder.ts";
import { isLocked, lock, RECHECK_MS } from "../owners.ts";

/** A right that one process has at a time. It ends with the process. */
export interface ProcessLock {
  release(): void;
}

const SERVICE = "serve";

/**
 * Takes the lock of the process that serves the store in `folder`. A dead holder's lock is free. Throws Host `store_served` while
 * another process holds it.
 */
export function lockService(folder: string): ProcessLock {
  const { owners, root } = findFolder(folder);
  const { file, pid } = filesOf(owners, SERVICE);
  for (const path of [file, pid]) refuseLink(path);
  let taken: ProcessLock | string;
  try {
    taken = takeLock(owners, SERVICE);
  } catch (thrown) {
    throw storeFault(thrown, file);
  }
  if (typeof taken !== "string") return taken;
  throw storeError("store_served", `${taken} serves the run store ${root} already; one process at a time can`, {
    path: root,
  });
}

/** The process that serves the store in `folder`, for display; undefined if none does. */
export function serviceOf(folder: string): string | undefined {
  const { owners } = findFolder(folder);
  const { file, pid } = filesOf(owners, SERVICE);
  if (!existsSync(file)) return undefined;
  return isLocked(file, 0) && isLocked(file, RECHECK_MS) ? holderIn(pid) : undefined;
}

/**
 * Takes the lock of this name in a folder, which has to exist. A dead holder's lock is free. Returns the holder in words while another
 * one has it. The lock's files stay, so that all processes lock the same one.
 */
export function takeLock(folder: string, name: string): ProcessLock | string {
  const { file, pid } = filesOf(folder, name);
  let held: DatabaseSync | undefined;
  try {
    while (held === undefined) held = lock(file);
  } catch (thrown) {
    if (!isBusy(thrown)) throw thrown;
    return holderIn(pid);
  }
  const taken = held;
  try {
    writeFileSync(pid, `${process.pid}\n`, { mode: 0o600 });
  } catch (thrown) {
    taken.close();
    throw thrown;
  }
  return { release: () => taken.close() };
}

/** `pid` is for messages. */
function filesOf(folder: string, name: string): { readonly file: string; readonly pid: string } {
  return { file: join(folder, `${name}.db`), pid: join(folder, `${name}.pid`) };
}

function holderIn(pid: string): string {
  const text = existsSync(pid) ? readFileSync(pid, "utf8").trim() : "";
  return /^\d{1,10}$/.test(text) ? `process ${text}` : "another process";
}
