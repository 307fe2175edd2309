import { readFileSync, statSync } from "node:fs";

/** Larger files are not read to explain an error. */
const MOST_BYTES = 1_000_000;

/** The text of a file that an error is about; undefined if it cannot be read. */
export function textOf(file: string): string | undefined {
  try {
    return isFile(file) && statSync(file).size <= MOST_BYTES ? readFileSync(file, "utf8") : undefined;
  } catch {
    // A file that cannot be read explains nothing; the error is reported without it.
    return undefined;
  }
}

export function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}
