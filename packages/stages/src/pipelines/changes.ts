import { closeSync, constants, existsSync, fstatSync, openSync, readSync, realpathSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Json } from "@sluice/core";
import { hardLimitOn, messageOf, shape } from "@sluice/core/runtime";

/** A stage's report of one changed file. */
export const changeSchema = shape.openObject({
  file: shape.text({ min: 1, description: "Relative to the workspace." }),
  change: shape.text({ min: 1, description: "What you changed in it, and why." }),
});

/** In bytes. */
const MAX_FILE = 20_000;
const MAX_FILES = 30;

export function reportedFiles(changes: readonly { readonly file: string }[] | undefined): readonly string[] {
  return [...new Set((changes ?? []).map((change) => change.file))];
}

/** The reported files as they are on disk, so that a review does not depend on the author's report. */
export function filesNow(workspace: string, files: readonly string[]): Json {
  const shown = files.slice(0, MAX_FILES).map((file): Json => ({ file, ...contentOf(workspace, file) }));
  return files.length <= MAX_FILES
    ? shown
    : [...shown, { note: `${files.length - MAX_FILES} more files are not shown` }];
}

/** Whether a file lies in a run store, which may be anywhere in the workspace. A store is known by what its folder holds. */
function isInStore(real: string, workspace: string): boolean {
  for (let folder = dirname(real); folder.length >= workspace.length; folder = dirname(folder)) {
    if (existsSync(join(folder, "journal.db")) && existsSync(join(folder, "blobs"))) return true;
    if (folder === dirname(folder)) return false;
  }
  return false;
}

function contentOf(workspace: string, file: string): { readonly [key: string]: Json } {
  let descriptor: number | undefined;
  try {
    const real = realpathSync(resolve(workspace, file));
    // The name comes from a model, and no stage can have changed a file that none may write.
    const limit = hardLimitOn({ kind: "path", real, access: "write" }, { workspace: { root: workspace } });
    if (limit !== undefined || isInStore(real, workspace)) return { missing: "not a file that a stage may change" };
    descriptor = openSync(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const stat = fstatSync(descriptor);
    if (!stat.isFile()) return { missing: "not a file" };
    const bytes = Buffer.alloc(Math.min(stat.size, MAX_FILE));
    const length = readSync(descriptor, bytes, 0, bytes.length, 0);
    const content = bytes.subarray(0, length).toString("utf8").toWellFormed();
    if (content.includes("\0")) return { missing: "a binary file" };
    if (stat.size <= MAX_FILE) return { content };
    const lines = wholeLines(content);
    return { content: lines, cut: `the first ${Buffer.byteLength(lines)} of ${stat.size} bytes` };
  } catch (thrown) {
    return { missing: messageOf(thrown) };
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

/** Without the line that was cut: known secrets are masked later, and half of one would not be found. */
function wholeLines(text: string): string {
  return text.slice(0, text.lastIndexOf("\n") + 1);
}
