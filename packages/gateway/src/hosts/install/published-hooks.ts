import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { sha256 } from "@sluice/core/runtime";
import { type LauncherOptions, launcherScript } from "../../hooks/launcher.ts";
import { opencodePlugin } from "../../hooks/opencode-plugin.ts";
import type { HostName } from "../../host-names.ts";
import { removeEmptyFolders } from "./empty-folders.ts";
import { readIfThere } from "./read-if-there.ts";

/**
 * The folder in which the gateway of a workspace puts what installed hooks run. It is in the user's state folder: a file in the
 * workspace could come with a repository.
 */
export function hookFolder(stateFolder: string, workspace: string): string {
  return join(stateFolder, "gateways", sha256(workspace).slice(0, KEY_LENGTH));
}

/** Digits of a workspace's key. The hook of a user computes the same. */
export const KEY_LENGTH = 32;

/** The file that an installed hook of a host runs. */
export function hookFileName(host: HostName): string {
  return host === "opencode" ? "opencode.mjs" : `${host}.sh`;
}

/**
 * Lets the installed hooks of a host reach this gateway. Returns a function that ends it, unless another gateway has taken the place. A
 * gateway that was killed leaves the file behind, and the hooks then refuse every call.
 */
export function publishHooks(folder: string, options: LauncherOptions): () => void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const { host } = options;
  const path = join(folder, hookFileName(host));
  const draft = `${path}.${process.pid}.tmp`;
  // It has the token of this gateway.
  const text = host === "opencode" ? opencodePlugin(options) : launcherScript(options);
  writeFileSync(draft, text, { mode: 0o600, flag: "wx" });
  renameSync(draft, path);
  return () => {
    if (readIfThere(path) !== text) return;
    rmSync(path);
    removeEmptyFolders([folder, dirname(folder)]);
  };
}

/** Removes what gateways left in their folder for a host, and the folder if nothing else is in it. */
export function removePublished(folder: string, host: HostName): void {
  for (const name of existsSync(folder) ? readdirSync(folder) : [])
    if (name.startsWith(`${host}.`)) rmSync(join(folder, name));
  removeEmptyFolders([folder, dirname(folder)]);
}
