import { closeSync, constants, fstatSync, openSync, readSync, realpathSync } from "node:fs";
import { relative, resolve, sep } from "node:path";
import type { Json } from "@sluice/core";
import { messageOf, shape } from "@sluice/core/runtime";

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

function contentOf(workspace: string, file: string): { readonly [key: string]: Json } {
  let descriptor: number | undefined;
  try {
    const real = realpathSync(resolve(workspace, file));
    const path = relative(workspace, real);
    // The name comes from a model, so the limits of Read apply.
    if (path === "" || path === ".." || path.startsWith(`..${sep}`) || path.split(sep)[0] === ".sluice")
      return { missing: "not a file of the workspace" };
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
