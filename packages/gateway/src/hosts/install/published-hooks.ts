import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { sha256 } from "@sluice/core/runtime";
import { type LauncherOptions, launcherScript } from "../../hooks/launcher.ts";
import { opencodePlugin } from "../../hooks/opencode-plugin.ts";
import type { HostName } from "../../host-names.ts";
import { removeEmptyFolders } from "./empty-folders.ts";

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
 * Lets the installed hooks of a host reach this gateway. Returns a function that ends it. A gateway that was killed leaves the file
 * behind, and the hooks then refuse every call.
 */
export function publishHooks(folder: string, options: LauncherOptions): () => void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const { host } = options;
  const path = join(folder, hookFileName(host));
  const draft = `${path}.${process.pid}.tmp`;
  writeFileSync(draft, host === "opencode" ? opencodePlugin(options) : launcherScript(options), {
    mode: 0o600,
    flag: "wx",
  });
  renameSync(draft, path);
  return () => removePublished(folder, host);
}

/** Removes what a gateway published for a host, and the folder if nothing else is in it. */
export function removePublished(folder: string, host: HostName): void {
  rmSync(join(folder, hookFileName(host)), { force: true });
  removeEmptyFolders([folder, dirname(folder)]);
}
