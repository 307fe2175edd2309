import { isUtf8 } from "node:buffer";
import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";
import { systemCode } from "../files/results.ts";

/** Enough for half a million files. */
const MAX_BYTES = 128 * 1024 * 1024;
/** More than any project has; each is looked for. */
const MAX_GITLINKS = 10_000;
/** The part of a mode by which git knows a submodule, whatever the permissions are. */
const TYPE = 0o170000;
const GITLINK = 0o160000;
const HEADER = 12;
const MODE_AT = 24;
/** Bytes of times, device, owner, mode and size before the object name. */
const STAT = 40;
const EXTENDED = 0x4000;
const NAME_LENGTH = 0x0fff;
/** Bytes of the name and the size of an extension. */
const EXTENSION_HEADER = 8;

/** Parts of a name that git refuses, though it obeys those in an index: such a name leads elsewhere than it says. */
const REFUSED_PART = /^(?:\.{0,2}|\.git)$/i;

/**
 * Paths of the submodules in a repository's index, relative to its work tree. Undefined if the index cannot be read, or one of them
 * is no text or a path that git refuses, or there are too many. `oidBytes` is the length of object names: 20, or 32 for SHA-256.
 */
export function gitlinks(indexFile: string, oidBytes: number): readonly string[] | undefined {
  const bytes = readIndex(indexFile);
  if (bytes === undefined || bytes === "missing") return bytes === undefined ? undefined : [];
  const found: string[] = [];
  const isComplete = readEntries(bytes, oidBytes, (name, mode) => {
    if ((mode & TYPE) !== GITLINK) return true;
    const path = name.toString("utf8");
    found.push(path);
    const isRefused = !isUtf8(name) || path.split("/").some((part) => REFUSED_PART.test(part));
    return !isRefused && found.length <= MAX_GITLINKS;
  });
  return isComplete ? found : undefined;
}

/** All folders that contain tracked files, relative to the work tree; undefined if the index cannot be read. */
export function trackedFolders(indexFile: string, oidBytes: number): ReadonlySet<string> | undefined {
  const bytes = readIndex(indexFile);
  const found = new Set<string>();
  if (bytes === "missing") return found;
  if (bytes === undefined) return undefined;
  let last = "";
  const isComplete = readEntries(bytes, oidBytes, (name) => {
    const slash = name.lastIndexOf("/");
    const folder = slash === -1 ? "" : name.toString("utf8", 0, slash);
    if (folder !== last)
      for (let at = folder.indexOf("/"); at !== -1; at = folder.indexOf("/", at + 1)) found.add(folder.slice(0, at));
    if (folder !== "") found.add(folder);
    last = folder;
    return true;
  });
  return isComplete ? found : undefined;
}

/** Returns false if an entry is malformed, if `visit` stops the walk, or if there are more entries in another file. */
function readEntries(bytes: Buffer, oidBytes: number, visit: (name: Buffer, mode: number) => boolean): boolean {
  const version = bytes.readUInt32BE(4);
  if (version < 2 || version > 4) return false;
  let name: Buffer = Buffer.alloc(0);
  let at = HEADER;
  for (let left = bytes.readUInt32BE(8); left > 0; left -= 1) {
    const flagsAt = at + STAT + oidBytes;
    if (flagsAt + 4 > bytes.length) return false;
    const flags = bytes.readUInt16BE(flagsAt);
    let nameAt = flagsAt + ((flags & EXTENDED) === 0 ? 2 : 4);
    let kept = 0;
    if (version === 4) {
      const cut = readVarint(bytes, nameAt);
      nameAt = cut.next;
      kept = name.length - cut.value;
    }
    const end = bytes.indexOf(0, nameAt);
    if (end === -1 || kept < 0) return false;
    const rest = bytes.subarray(nameAt, end);
    name = kept === 0 ? rest : Buffer.concat([name.subarray(0, kept), rest]);
    const length = flags & NAME_LENGTH;
    if (name.length === 0 || (length < NAME_LENGTH && length !== name.length)) return false;
    if (!visit(name, bytes.readUInt32BE(at + MODE_AT))) return false;
    // Before version 4, one to eight NULs pad each entry.
    at = version === 4 ? end + 1 : at + ((end - at + 8) & ~7);
  }
  return !isSplit(bytes, at, oidBytes);
}

/** Whether one of the extensions, which lie between the entries and a checksum, names another index. */
function isSplit(bytes: Buffer, from: number, oidBytes: number): boolean {
  const last = bytes.length - oidBytes - EXTENSION_HEADER;
  for (let at = from; at <= last; at += EXTENSION_HEADER + bytes.readUInt32BE(at + 4))
    if (bytes.toString("latin1", at, at + 4) === "link") return true;
  return false;
}

/** Git's variable-length numbers: each further byte adds one to its bits. */
function readVarint(bytes: Buffer, from: number): { readonly value: number; readonly next: number } {
  let at = from;
  let byte = bytes[at] ?? 0;
  let value = byte & 0x7f;
  while ((byte & 0x80) !== 0) {
    at += 1;
    byte = bytes[at] ?? 0;
    value = (value + 1) * 128 + (byte & 0x7f);
  }
  return { value, next: at + 1 };
}

/** The bytes of an index with a valid header; undefined if it cannot be read. */
function readIndex(file: string): Buffer | "missing" | undefined {
  let fd: number;
  try {
    fd = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (thrown) {
    if (systemCode(thrown) === undefined) throw thrown;
    return systemCode(thrown) === "ENOENT" ? "missing" : undefined;
  }
  try {
    const stats = fstatSync(fd);
    if (!stats.isFile() || stats.size > MAX_BYTES) return undefined;
    const bytes = readFileSync(fd);
    return bytes.length >= HEADER && bytes.toString("latin1", 0, 4) === "DIRC" ? bytes : undefined;
  } finally {
    closeSync(fd);
  }
}
