import {
  type BigIntStats,
  closeSync,
  constants,
  type Dirent,
  existsSync,
  fstatSync,
  lstatSync,
  openSync,
  readlinkSync,
  realpathSync,
} from "node:fs";
import { type FileHandle, lstat, mkdir, open, readdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { pathChanged, specialKind } from "./paths.ts";
import { asFault, cancelled, fault, systemCode } from "./results.ts";

/** An open file that is proven to be the judged one. */
export interface OpenFile {
  readonly handle: FileHandle;
  readonly stats: BigIntStats;
}

/** Opens a judged path for reading while `use` runs: never through a link, never a pipe or device, only if it is unchanged. */
export function withFile<T>(real: string, use: (file: OpenFile) => Promise<T>): Promise<T> {
  return withOpen(real, "file", use);
}

async function withOpen<T>(real: string, kind: "file" | "folder", use: (opened: OpenFile) => Promise<T>): Promise<T> {
  const folder = kind === "folder" ? constants.O_DIRECTORY : 0;
  let handle: FileHandle;
  try {
    // Without O_NONBLOCK, opening a named pipe would block.
    handle = await open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | folder);
  } catch (thrown) {
    if (kind === "folder" && systemCode(thrown) === "ENOTDIR") throw notAFolder(real);
    throw asFault(thrown, basename(real));
  }
  try {
    const stats = fstatSync(handle.fd, { bigint: true });
    if (specialKind(stats) !== undefined) throw pathChanged(basename(real));
    if (!isStillAt(handle.fd, stats, real)) throw pathChanged(basename(real));
    if (stats.isDirectory() !== (kind === "folder")) throw kind === "folder" ? notAFolder(real) : notAFile(real);
    return await use({ handle, stats });
  } finally {
    await handle.close();
  }
}

function notAFile(real: string): Error {
  return fault("is_folder", `${basename(real)} is a folder. Use Glob to list it.`);
}

function notAFolder(real: string): Error {
  return fault("not_a_folder", `${basename(real)} is not a folder.`);
}

/** Whether the path still names the open file, without links on the way. */
function isStillAt(fd: number, stats: BigIntStats, real: string): boolean {
  const byKernel = kernelPath(fd);
  if (byKernel !== undefined) return byKernel === real;
  try {
    const there = lstatSync(real, { bigint: true });
    return there.ino === stats.ino && there.dev === stats.dev && realpathSync.native(real) === real;
  } catch (thrown) {
    if (systemCode(thrown) === "ENOENT") return false;
    throw thrown;
  }
}

/** The path of an open file according to Linux; undefined elsewhere. */
function kernelPath(fd: number): string | undefined {
  if (process.platform !== "linux") return undefined;
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch (thrown) {
    if (systemCode(thrown) === "ENOENT") return undefined;
    throw thrown;
  }
}

const CHUNK_BYTES = 1024 * 1024;

/** Reads at most `cap` bytes from the start of the file. */
export async function readUpTo(file: OpenFile, cap: number, signal?: AbortSignal): Promise<Buffer> {
  const chunks: Buffer[] = [];
  const size = Number(file.stats.size);
  let length = 0;
  while (length < cap) {
    if (signal?.aborted === true) throw cancelled();
    // One byte more than there should be: a file may have grown, and some file systems report a size of 0.
    const rest = size > length ? size - length + 1 : CHUNK_BYTES;
    const chunk = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, cap - length, rest));
    const { bytesRead } = await file.handle.read(chunk, 0, chunk.length, length);
    if (bytesRead === 0) break;
    chunks.push(chunk.subarray(0, bytesRead));
    length += bytesRead;
    // A short read at the size is the end; some file systems read less than there is.
    if (bytesRead < chunk.length && size > 0 && length >= size) break;
  }
  return Buffer.concat(chunks);
}

/** An open folder that is proven to be the judged one; replacing its path cannot redirect access through it. */
export interface OpenFolder {
  /** A path to the folder; on Linux it goes through the open descriptor. */
  readonly path: string;
  /** Path of an entry, below `path`. */
  at(name: string): string;
  /** Makes created, renamed and removed entries durable. */
  sync(): Promise<void>;
}

export function withFolder<T>(real: string, use: (folder: OpenFolder) => Promise<T>): Promise<T> {
  return withOpen(real, "folder", ({ handle }) => {
    const anchored = kernelPath(handle.fd) !== undefined;
    const path = anchored ? `/proc/${process.pid}/fd/${handle.fd}` : real;
    return use({
      path,
      at: (name) => join(path, name),
      // Windows can neither sync a folder nor needs to.
      sync: () => (process.platform === "win32" ? Promise.resolve() : handle.sync()),
    });
  });
}

/** Lists such a folder. Walks call this thousands of times, so on Linux all but the listing is synchronous. */
export async function listFolder(real: string): Promise<Dirent[]> {
  const listing = { withFileTypes: true } as const;
  if (!existsSync("/proc/self/fd")) return withFolder(real, ({ path }) => readdir(path, listing));
  const fd = openSync(real, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    const place = `/proc/self/fd/${fd}`;
    if (readlinkSync(place) !== real) throw pathChanged(basename(real));
    return await readdir(place, listing);
  } finally {
    closeSync(fd);
  }
}

/** Opens a folder, creating it and its missing parents one by one from the nearest that exists. */
export async function withMadeFolder<T>(real: string, use: (folder: OpenFolder) => Promise<T>): Promise<T> {
  if (!(await exists(real))) {
    await withMadeFolder(dirname(real), async (parent) => {
      try {
        await mkdir(parent.at(basename(real)));
      } catch (thrown) {
        // Another process created it: opening it below checks what it is.
        if (systemCode(thrown) !== "EEXIST") throw asFault(thrown, basename(dirname(real)));
      }
      await parent.sync();
    });
  }
  return withFolder(real, use);
}

async function exists(real: string): Promise<boolean> {
  try {
    await lstat(real);
    return true;
  } catch (thrown) {
    const code = systemCode(thrown);
    if (code === "ENOENT" || code === "ENOTDIR") return false;
    throw asFault(thrown, basename(real));
  }
}
