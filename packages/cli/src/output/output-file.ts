import { closeSync, fsyncSync, linkSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { messageOf, SluiceError } from "@sluice/core";

/** The file that something about a run goes to when nobody names one: in the folder one is in, whatever a store calls its runs. */
export function fileNameOf(runId: string, ending: string): string {
  return `${runId.replaceAll(/[^\w-]+/g, "_").slice(0, LONGEST_NAME)}.${ending}`;
}

const LONGEST_NAME = 100;

/**
 * Writes a whole file that only its owner reads, or none: what is there stays unless `force` is given, and until the new one is
 * complete. Returns its bytes; undefined when something is there and stays. Throws Validation `usage`.
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
    throw new SluiceError("Validation", "usage", `${path} cannot be written: ${why}`, { cause });
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
    // Unlike a rename, a link takes no file's place.
    linkSync(draft, path);
    return true;
  } catch (cause) {
    if (cause instanceof Error && "code" in cause && cause.code === "EEXIST") return false;
    throw cause;
  }
}

function writeAll(file: number, part: Buffer): number {
  for (let at = 0; at < part.length; ) at += writeSync(file, part, at);
  return part.length;
}
