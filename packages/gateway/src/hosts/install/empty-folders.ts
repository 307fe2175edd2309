import { rmdirSync } from "node:fs";

/** Removes folders, the innermost first, up to one that is not empty. */
export function removeEmptyFolders(folders: readonly string[]): void {
  for (const folder of folders) {
    try {
      rmdirSync(folder);
    } catch (thrown) {
      // A folder with other files is in use.
      if (!isNotEmpty(thrown)) throw thrown;
      return;
    }
  }
}

function isNotEmpty(thrown: unknown): boolean {
  return thrown instanceof Error && "code" in thrown && (thrown.code === "ENOTEMPTY" || thrown.code === "ENOENT");
}
