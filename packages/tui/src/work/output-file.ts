import { closeSync, fsyncSync, linkSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { messageOf, SluiceError } from "@sluice/core";

/**
 * Writes a whole file that only its owner reads, or none: what is there stays unless `force` is given, and until the new one is
 * complete. Returns its bytes. Throws Validation `usage`.
 */
export function writeWhole(path: string, parts: Iterable<string>, force: boolean): number {
  const draft = `${path}.${process.pid}.tmp`;
  let bytes = 0;
  try {
    const file = openSync(draft, "wx", 0o600);
    try {
      for (const part of parts) bytes += writeAll(file, Buffer.from(part));
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    if (force) renameSync(draft, path);
    // Unlike a rename, a link takes no file's place.
    else linkSync(draft, path);
    return bytes;
  } catch (cause) {
    const isThere = cause instanceof Error && "code" in cause && cause.code === "EEXIST";
    const why = isThere ? "is there already; --force replaces it" : `cannot be written: ${messageOf(cause)}`;
    throw new SluiceError("Validation", "usage", `${path} ${why}`, { cause });
  } finally {
    rmSync(draft, { force: true });
  }
}

function writeAll(file: number, part: Buffer): number {
  for (let at = 0; at < part.length; ) at += writeSync(file, part, at);
  return part.length;
}
