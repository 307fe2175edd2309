import { closeSync, fsyncSync, linkSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { messageOf } from "@sluice/core/runtime";
import { usageError } from "./output.ts";

/** The default file for output about a run: in the current folder, whatever the run id contains. */
export function fileNameOf(runId: string, ending: string): string {
  return `${runId.replaceAll(/[^\w-]+/g, "_").slice(0, MAX_NAME)}.${ending}`;
}

const MAX_NAME = 100;

export interface WriteOptions {
  /** Whether an existing file is replaced. */
  readonly force: boolean;
  /** Whether others may read the file as far as the user's umask lets them. Default: only the user. */
  readonly shared?: boolean;
}

/**
 * Writes a file atomically. Returns its size in bytes, or undefined if the file exists and `force` is false. Throws Validation
 * `usage`.
 */
export function writeWhole(
  path: string,
  parts: Iterable<string>,
  { force, shared = false }: WriteOptions,
): number | undefined {
  const draft = `${path}.${process.pid}.tmp`;
  let bytes = 0;
  try {
    const file = openSync(draft, "wx", shared ? 0o666 : 0o600);
    try {
      for (const part of parts) {
        writeFileSync(file, part);
        bytes += Buffer.byteLength(part);
      }
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    return putInPlace(draft, path, force) ? bytes : undefined;
  } catch (cause) {
    const why = hasCode(cause, "ENOENT")
      ? `there is no folder ${dirname(path)}`
      : messageOf(cause).replaceAll(draft, path);
    throw usageError(`${path} cannot be written: ${why}`, { cause });
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Whether an error of the file system has this code. */
export function hasCode(thrown: unknown, code: string): boolean {
  return thrown instanceof Error && "code" in thrown && thrown.code === code;
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
    if (hasCode(cause, "EEXIST")) return false;
    throw cause;
  }
}
