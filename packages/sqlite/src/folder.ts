import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  realpathSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { COMMANDS_FOLDER } from "@sluice/core/runtime";
import { damaged, notWritable, storeError, storeFault, systemCode } from "./faults.ts";
import { sharedFilesystem } from "./machine.ts";

/** The paths of a store. */
export interface StoreFolder {
  /** Absolute, links resolved. */
  readonly root: string;
  readonly journal: string;
  readonly owners: string;
  readonly blobs: string;
}

const JOURNAL = "journal.db";
const OWN_NAMES: ReadonlySet<string> = new Set([
  ".gitignore",
  JOURNAL,
  `${JOURNAL}-wal`,
  `${JOURNAL}-shm`,
  "owners",
  "blobs",
  COMMANDS_FOLDER,
]);

function partsOf(root: string): StoreFolder {
  return { root, journal: join(root, JOURNAL), owners: join(root, "owners"), blobs: join(root, "blobs") };
}

/** Refuses a folder that cannot hold a store. Writes nothing. Returns the store's paths if there is one. */
export function checkFolder(folder: string): StoreFolder | undefined {
  const wanted = resolve(folder);
  const there = nearestExisting(wanted);
  refuseShared(there, wanted);
  if (!statSync(there).isDirectory()) throw notWritable(there, "it is a file, not a folder");
  if (there !== wanted) {
    requireWritable(there);
    return undefined;
  }
  requireWritable(there);
  const parts = partsOf(there);
  for (const name of OWN_NAMES) refuseLink(join(there, name));
  if (existsSync(parts.journal)) {
    for (const part of [parts.journal, parts.owners, parts.blobs]) if (existsSync(part)) requireWritable(part);
    return partsOf(realpathSync(there));
  }
  const stranger = readdirSync(there).find((name) => !OWN_NAMES.has(name));
  if (stranger === undefined) return undefined;
  const why = `${there} holds other files (${stranger}) and no run store`;
  throw storeError("store_folder_in_use", `${why}; name an empty or new folder with --store`, { path: there });
}

/** Creates missing parts, readable only by their owner. */
export function makeFolder(folder: string): StoreFolder {
  const wanted = resolve(folder);
  try {
    makeParents(dirname(wanted));
    const fresh = makeOwnFolder(wanted);
    const parts = partsOf(realpathSync(wanted));
    makeOwnFolder(parts.owners);
    makeOwnFolder(parts.blobs);
    const ignore = join(parts.root, ".gitignore");
    // Also an empty one, which a killed process may have left.
    if ((statSync(ignore, { throwIfNoEntry: false })?.size ?? 0) === 0) writeFileSync(ignore, "*\n", { mode: 0o600 });
    if (fresh) syncFolder(dirname(parts.root));
    return parts;
  } catch (thrown) {
    throw storeFault(thrown, wanted);
  }
}

/** The paths of a store for reading. */
export function findFolder(folder: string): StoreFolder {
  const wanted = resolve(folder);
  try {
    // Opening another kind of file may block forever.
    if (!statSync(join(wanted, JOURNAL)).isFile()) throw damaged(join(wanted, JOURNAL), "it is not a plain file");
  } catch (thrown) {
    if (!["ENOENT", "ENOTDIR"].includes(systemCode(thrown) ?? "")) throw storeFault(thrown, wanted);
    throw storeError("store_missing", `there is no run store in ${wanted}; name another folder with --store`, {
      path: wanted,
    });
  }
  refuseShared(wanted, wanted);
  return partsOf(realpathSync(wanted));
}

/** Removes other users' permissions, if this user owns the path. */
export function makePrivate(path: string, mode: number): void {
  const { mode: found, uid } = statSync(path);
  if ((found & 0o077) !== 0 && (process.getuid === undefined || uid === process.getuid())) chmodSync(path, mode);
}

/** Makes new names in a folder survive a power loss; not needed on Windows. */
export function syncFolder(folder: string): void {
  if (process.platform !== "win32") withFile(folder, "r", fsyncSync);
}

/** Writes a private file that survives a power loss. */
export function writeSynced(file: string, bytes: Buffer, flags: "w" | "wx"): void {
  withFile(file, flags, (handle) => {
    writeFileSync(handle, bytes);
    fsyncSync(handle);
  });
}

export function withFile<T>(path: string, flags: string | number, work: (handle: number) => T): T {
  const handle = openSync(path, flags, 0o600);
  try {
    return work(handle);
  } finally {
    closeSync(handle);
  }
}

export function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch (thrown) {
    if (systemCode(thrown) === undefined) throw thrown;
    return false;
  }
}

/** One folder at a time, since a recursive `mkdir` never returns below /proc. */
function makeParents(path: string): void {
  if (existsSync(path)) return;
  makeParents(dirname(path));
  makeOne(path);
}

/** Another process may create the same folder. */
function makeOne(path: string, mode?: number): void {
  try {
    mkdirSync(path, mode);
  } catch (thrown) {
    if (systemCode(thrown) !== "EEXIST") throw thrown;
  }
}

function makeOwnFolder(path: string): boolean {
  const fresh = !existsSync(path);
  if (fresh) makeOne(path, 0o700);
  makePrivate(path, 0o700);
  return fresh;
}

function requireWritable(path: string): void {
  try {
    accessSync(path, constants.R_OK | constants.W_OK);
  } catch (thrown) {
    throw storeFault(thrown, path);
  }
}

/** A link in a folder that came from elsewhere must not redirect what is written. */
export function refuseLink(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return;
  throw storeError("store_folder_in_use", `${path} is a link, which a run store never contains; remove it`, { path });
}

export function nearestExisting(path: string): string {
  let at = path;
  while (!existsSync(at) && dirname(at) !== at) at = dirname(at);
  return at;
}

function refuseShared(there: string, wanted: string): void {
  const shared = sharedFilesystem(realpathSync(there));
  if (shared === undefined) return;
  throw storeError(
    "store_network_filesystem",
    `${wanted} is on ${shared}, a network file system, where locks do not work; name a local folder with --store`,
    { path: wanted, filesystem: shared, name: basename(wanted) },
  );
}
