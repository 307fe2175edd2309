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
import { damaged, notWritable, storeError, storeFault, systemCode } from "./faults.ts";
import { sharedFilesystem } from "./machine.ts";

/** The parts of a store's folder. */
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
]);

function partsOf(root: string): StoreFolder {
  return { root, journal: join(root, JOURNAL), owners: join(root, "owners"), blobs: join(root, "blobs") };
}

/** Refuses a folder that cannot hold a store. Writes nothing. Returns where the store is, when there is one. */
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
  const why = `${there} holds no run store but other things (${stranger})`;
  throw storeError("store_folder_in_use", `${why}; name a folder of its own with --store`, { path: there });
}

/** Makes what is missing, readable for its owner only. */
export function makeFolder(folder: string): StoreFolder {
  const wanted = resolve(folder);
  try {
    makeParents(dirname(wanted));
    const fresh = makeOwnFolder(wanted);
    const parts = partsOf(realpathSync(wanted));
    makeOwnFolder(parts.owners);
    makeOwnFolder(parts.blobs);
    const ignore = join(parts.root, ".gitignore");
    // Also one that a kill left empty, which would let everything through.
    if ((statSync(ignore, { throwIfNoEntry: false })?.size ?? 0) === 0) writeFileSync(ignore, "*\n", { mode: 0o600 });
    if (fresh) syncFolder(dirname(parts.root));
    return parts;
  } catch (thrown) {
    throw storeFault(thrown, wanted);
  }
}

/** The folder of a store that is only read. */
export function findFolder(folder: string): StoreFolder {
  const wanted = resolve(folder);
  try {
    // Another kind of file may keep whoever opens it for ever.
    if (!statSync(join(wanted, JOURNAL)).isFile()) throw damaged(join(wanted, JOURNAL), "it is no plain file");
  } catch (thrown) {
    if (!["ENOENT", "ENOTDIR"].includes(systemCode(thrown) ?? "")) throw storeFault(thrown, wanted);
    throw storeError("store_missing", `there is no run store in ${wanted}; name another folder with --store`, {
      path: wanted,
    });
  }
  refuseShared(wanted, wanted);
  return partsOf(realpathSync(wanted));
}

/** Takes other users' rights away, where this user may. */
export function makePrivate(path: string, mode: number): void {
  const { mode: found, uid } = statSync(path);
  if ((found & 0o077) !== 0 && (process.getuid === undefined || uid === process.getuid())) chmodSync(path, mode);
}

/** Makes new names in a folder survive a power loss. Windows has no such call and needs none. */
export function syncFolder(folder: string): void {
  if (process.platform === "win32") return;
  const handle = openSync(folder, "r");
  try {
    fsyncSync(handle);
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

/** One folder at a time: `mkdir` with `recursive` never returns where the system answers ENOENT for a name it will not make (/proc). */
function makeParents(path: string): void {
  if (existsSync(path)) return;
  makeParents(dirname(path));
  makeOne(path);
}

/** Another process may be making the same store. */
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

/** A folder that came with somebody's files must not send what a run writes to another place. */
function refuseLink(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return;
  throw storeError("store_folder_in_use", `${path} is a link, which no run store holds; remove it`, { path });
}

function nearestExisting(path: string): string {
  let at = path;
  while (!existsSync(at) && dirname(at) !== at) at = dirname(at);
  return at;
}

function refuseShared(there: string, wanted: string): void {
  const shared = sharedFilesystem(realpathSync(there));
  if (shared === undefined) return;
  throw storeError(
    "store_network_filesystem",
    `${wanted} lies on ${shared}, a file system that several machines write to, where locks do not hold; name a local folder with --store`,
    { path: wanted, filesystem: shared, name: basename(wanted) },
  );
}
