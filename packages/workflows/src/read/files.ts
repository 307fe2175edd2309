// The files of workflows on the disk, read with limits.

import { constants } from "node:fs";
import { open, readdir, stat } from "node:fs/promises";
import { SluiceError } from "@sluice/core";
import { MAX_BYTES } from "./limits.ts";

/** What loading a workflow reads. Paths are those of the caller and of the documents. */
export interface WorkflowFiles {
  /** The text of a file. Throws if it cannot be read. */
  read(path: string): Promise<string>;
  /** The names in a folder; undefined if the path is not a folder. */
  list(path: string): Promise<readonly string[] | undefined>;
}

/** The files of the disk. A file is read up to the limit of a workflow file, so that its size costs no memory. */
export const diskFiles: WorkflowFiles = {
  read: async (path) => {
    // Without waiting for a writer, if it is a pipe.
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      if (!(await file.stat()).isFile()) throw new SluiceError("Validation", "not_a_file", `${path} is not a file`);
      const buffer = Buffer.alloc(MAX_BYTES + 1);
      let length = 0;
      for (;;) {
        const { bytesRead } = await file.read(buffer, length, buffer.length - length, length);
        length += bytesRead;
        if (bytesRead === 0 || length === buffer.length) break;
      }
      // A longer file ends in the middle, perhaps of a character, and is refused for its size.
      const fatal = length <= MAX_BYTES;
      return new TextDecoder("utf-8", { fatal, ignoreBOM: true }).decode(buffer.subarray(0, length));
    } finally {
      await file.close();
    }
  },
  list: async (path) => {
    try {
      return (await stat(path)).isDirectory() ? (await readdir(path)).toSorted() : undefined;
    } catch (thrown) {
      if (isMissing(thrown)) return undefined;
      throw thrown;
    }
  },
};

/** Whether a thrown value says that there is no such file. */
function isMissing(thrown: unknown): boolean {
  return thrown instanceof Error && "code" in thrown && (thrown.code === "ENOENT" || thrown.code === "ENOTDIR");
}
