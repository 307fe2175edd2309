import { closeSync, constants, fstatSync, openSync, readSync, realpathSync } from "node:fs";
import { relative, resolve, sep } from "node:path";
import { type Json, messageOf } from "@sluice/core";
import { z } from "zod";

/** What a stage reports of one file it changed. */
export const changeSchema = z.object({
  file: z.string().min(1).describe("Relative to the workspace."),
  change: z.string().min(1).describe("What is different in it now, and why."),
});

/** Enough for a review; what is cut is said. */
const LONGEST_FILE = 20_000;
const MOST_FILES = 30;

export function reportedFiles(changes: readonly { readonly file: string }[] | undefined): readonly string[] {
  return [...new Set((changes ?? []).map((change) => change.file))];
}

/** The reported files as they are on disk: a review must not depend on what the author says of them. */
export function filesNow(workspace: string, files: readonly string[]): Json {
  const shown = files.slice(0, MOST_FILES).map((file): Json => ({ file, ...contentOf(workspace, file) }));
  return files.length <= MOST_FILES
    ? shown
    : [...shown, { note: `${files.length - MOST_FILES} more files are not shown` }];
}

function contentOf(workspace: string, file: string): { readonly [key: string]: Json } {
  let descriptor: number | undefined;
  try {
    const real = realpathSync(resolve(workspace, file));
    const path = relative(workspace, real);
    // The name comes from a model: the same limits as for Read.
    if (path === "" || path === ".." || path.startsWith(`..${sep}`) || path.split(sep)[0] === ".sluice")
      return { missing: "not a file of the workspace" };
    descriptor = openSync(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const stat = fstatSync(descriptor);
    if (!stat.isFile()) return { missing: "not a file" };
    const bytes = Buffer.alloc(Math.min(stat.size, LONGEST_FILE));
    const length = readSync(descriptor, bytes, 0, bytes.length, 0);
    const content = bytes.subarray(0, length).toString("utf8").toWellFormed();
    if (content.includes("\0")) return { missing: "a binary file" };
    return stat.size > LONGEST_FILE ? { content, cut: `the first ${LONGEST_FILE} of ${stat.size} bytes` } : { content };
  } catch (thrown) {
    return { missing: messageOf(thrown) };
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}
