import { appendFileSync, closeSync, constants, lstatSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { messageOf } from "@sluice/core/runtime";
import { ownFile } from "../../options.ts";
import { usageError } from "../../output/output.ts";
import { writeWhole } from "../../output/output-file.ts";
import { isWithin, realPath } from "../../project/project-paths.ts";

/** A file that `init` writes if there is none. */
export interface NewFile {
  /** Absolute. */
  readonly path: string;
  readonly text: string;
  /** The folder that the file must be in once links are resolved. */
  readonly within: string;
}

/** The text of a sample, with `__name__` replaced by the value of that name. */
export function sampleOf(sample: string, values: Readonly<Record<string, string>>): string {
  return Object.entries(values).reduce(
    (text, [name, value]) => text.replaceAll(`__${name}__`, () => value),
    readFileSync(ownFile(`sample/${sample}`), "utf8"),
  );
}

/** Throws Validation `usage` if a file would be written elsewhere: a cloned folder could lead there by a link. */
export function refuseLinksOutside(files: readonly NewFile[]): void {
  for (const { path, within } of files) {
    const folder = dirname(path);
    if (!isWithin(realPath(folder), within)) throw usageError(`${folder} is a link that leads out of ${within}`);
  }
}

/** Writes a file and its folders. Returns false if the file exists. Throws Validation `usage` if it cannot be written. */
export function writeNew({ path, text }: NewFile): boolean {
  const folder = dirname(path);
  try {
    mkdirSync(folder, { recursive: true });
  } catch (cause) {
    throw usageError(`${folder} cannot be made: ${messageOf(cause)}`, { cause });
  }
  return writeWhole(path, [text], { force: false, shared: true }) !== undefined;
}

/** Whether there is an entry of this name, also a link that leads nowhere. */
export function isEntry(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

/** The text that adds a line to a file with the line ends of that file. */
export function addedLine(text: string, line: string): string {
  const end = /\r?\n/.exec(text)?.[0] ?? "\n";
  return `${text === "" || text.endsWith("\n") ? "" : end}${line}${end}`;
}

/** Appends to a file, and never through a link. Throws Validation `usage` if it cannot be written. */
export function append(path: string, text: string): void {
  try {
    const file = openSync(path, constants.O_WRONLY | constants.O_APPEND | constants.O_NOFOLLOW);
    try {
      appendFileSync(file, text);
    } finally {
      closeSync(file);
    }
  } catch (cause) {
    throw usageError(`${path} cannot be written: ${messageOf(cause)}`, { cause });
  }
}
