import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";
import { systemCode } from "./results.ts";

/** An index of half a million files. */
const MAX_BYTES = 128 * 1024 * 1024;
const MAX_GITLINKS = 200;
/** Type and permissions of an entry that is a submodule, as they stand in the file. */
const GITLINK = 0xe000;
const GITLINK_BYTES = Buffer.from([0, 0, 0xe0, 0]);
const HEADER = 12;
const MODE_AT = 24;
/** Times, device, owner, mode and size in front of the object's name. */
const STAT = 40;
const EXTENDED = 0x4000;
const NAME_LENGTH = 0x0fff;

/**
 * Paths of the submodules that a repository's index holds, relative to its work tree. Undefined when that cannot be told.
 * `oidBytes` is the length of object names: 20, or 32 where they are SHA-256.
 */
export function gitlinks(indexFile: string, oidBytes: number): readonly string[] | undefined {
  const bytes = readIndex(indexFile);
  if (bytes === undefined || bytes === "missing") return bytes === undefined ? undefined : [];
  if (bytes.length < HEADER || bytes.toString("latin1", 0, 4) !== "DIRC") return undefined;
  // Nearly no index holds one, and none without these bytes does.
  return bytes.includes(GITLINK_BYTES) ? readEntries(bytes, oidBytes) : [];
}

function readEntries(bytes: Buffer, oidBytes: number): readonly string[] | undefined {
  const version = bytes.readUInt32BE(4);
  if (version < 2 || version > 4) return undefined;
  const found: string[] = [];
  let name: Buffer = Buffer.alloc(0);
  let at = HEADER;
  for (let left = bytes.readUInt32BE(8); left > 0; left -= 1) {
    const flagsAt = at + STAT + oidBytes;
    if (flagsAt + 4 > bytes.length) return undefined;
    const flags = bytes.readUInt16BE(flagsAt);
    let nameAt = flagsAt + ((flags & EXTENDED) === 0 ? 2 : 4);
    let kept = 0;
    if (version === 4) {
      const cut = readVarint(bytes, nameAt);
      nameAt = cut.next;
      kept = name.length - cut.value;
    }
    const end = bytes.indexOf(0, nameAt);
    if (end === -1 || kept < 0) return undefined;
    name = Buffer.concat([name.subarray(0, kept), bytes.subarray(nameAt, end)]);
    const length = flags & NAME_LENGTH;
    if (name.length === 0 || (length < NAME_LENGTH && length !== name.length)) return undefined;
    if (bytes.readUInt32BE(at + MODE_AT) === GITLINK) found.push(name.toString("utf8"));
    if (found.length > MAX_GITLINKS) return undefined;
    // Entries before version 4 are filled up with one to eight NULs.
    at = version === 4 ? end + 1 : at + ((end - at + 8) & ~7);
  }
  return found;
}

/** Git's own numbers of variable length: each further byte adds one besides its bits. */
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
    return stats.isFile() && stats.size <= MAX_BYTES ? readFileSync(fd) : undefined;
  } finally {
    closeSync(fd);
  }
}
