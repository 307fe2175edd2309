import { closeSync, fsyncSync, linkSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { messageOf } from "@sluice/core/runtime";
import { usageError } from "./output.ts";

/** The default file for output about a run: in the current folder, whatever the run id contains. */
export function fileNameOf(runId: string, ending: string): string {
  return `${runId.replaceAll(/[^\w-]+/g, "_").slice(0, MAX_NAME)}.${ending}`;
}

const MAX_NAME = 100;

/**
 * Writes a private file atomically. Returns its size in bytes, or undefined if the file exists and `force` is false. Throws
 * Validation `usage`.
 */
export function writeWhole(path: string, parts: Iterable<string>, force: boolean): number | undefined {
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
    return putInPlace(draft, path, force) ? bytes : undefined;
  } catch (cause) {
    const why = isMissing(cause) ? `there is no folder ${dirname(path)}` : messageOf(cause).replaceAll(draft, path);
    throw usageError(`${path} cannot be written: ${why}`, { cause });
  } finally {
    rmSync(draft, { force: true });
  }
}

function isMissing(cause: unknown): boolean {
  return cause instanceof Error && "code" in cause && cause.code === "ENOENT";
}

function putInPlace(draft: string, path: string, force: boolean): boolean {
  if (force) {
    renameSync(draft, path);
    return true;
  }
  try {
    // Unlike a rename, a link does not replace an existing file.
    linkSync(draft, path);
    return true;
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && cause.code === "EEXIST") return false;
    throw cause;
  }
}

function writeAll(file: number, part: Buffer): number {
  for (let offset = 0; offset < part.length; ) offset += writeSync(file, part, offset);
  return part.length;
}
