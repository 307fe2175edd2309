import { readFileSync, rmdirSync } from "node:fs";
import { SluiceError } from "@sluice/core";
import { messageOf } from "@sluice/core/runtime";

/** The text of a file. Throws Validation `host_config_invalid` for a file that cannot be read. */
export function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (thrown) {
    if (thrown instanceof Error && "code" in thrown && thrown.code === "ENOENT") return undefined;
    throw new SluiceError("Validation", "host_config_invalid", `${path} cannot be read: ${messageOf(thrown)}`);
  }
}

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
