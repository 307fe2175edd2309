import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { digestOf, messageOf, sha256 } from "@sluice/core";
import type { FileDigest } from "@sluice/stages";

/** Versions of one file that are remembered: runs of earlier ones may still wait to be resumed. */
const KEPT = 50;

/** All that a pipeline file is made of. */
type FileDigests = readonly FileDigest[];

/**
 * Pipeline files that the user named on a command line here, as they were then. Kept outside of all projects and stores: a
 * store may come from anywhere and name any file, and says by itself nothing about who named it.
 */
export interface NamedFiles {
  holds(file: string, madeOf: FileDigests): boolean;
  /** Returns why it could not be remembered, if so: then resuming needs --trust. */
  remember(file: string, madeOf: FileDigests): string | undefined;
}

export function createNamedFiles(stateFolder: string): NamedFiles {
  const folder = join(stateFolder, "named");
  // A note for each file, so that two commands at once do not take each other's back.
  const noteOf = (file: string): string => join(folder, sha256(file).slice(0, 32));
  return {
    holds: (file, madeOf) => readNote(noteOf(file)).includes(digestOf(madeOf)),
    remember(file, madeOf) {
      const digest = digestOf(madeOf);
      const note = noteOf(file);
      const known = readNote(note);
      if (known.includes(digest)) return undefined;
      try {
        mkdirSync(folder, { recursive: true, mode: 0o700 });
        const draft = `${note}.${process.pid}`;
        writeFileSync(draft, [...known, digest].slice(-KEPT).join("\n"), { mode: 0o600 });
        renameSync(draft, note);
        return undefined;
      } catch (thrown) {
        return `that ${file} was named cannot be remembered, so resuming its runs will need --trust: ${messageOf(thrown)}`;
      }
    },
  };
}

function readNote(note: string): readonly string[] {
  try {
    return readFileSync(note, "utf8").split("\n");
  } catch (thrown) {
    // No note, or none that can be read, says nothing.
    if (thrown instanceof Error && "code" in thrown) return [];
    throw thrown;
  }
}
