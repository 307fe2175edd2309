import { mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { sha256 } from "@sluice/core/runtime";
import { boundScript, type LauncherOptions, launcherScript } from "../../hooks/launcher.ts";
import { opencodePlugin } from "../../hooks/opencode-plugin.ts";
import type { HostName } from "../../host-names.ts";
import { readIfThere, removeEmptyFolders } from "./files.ts";

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

/** The file that an installed hook of a host runs while there is none of a gateway. */
export function boundFileName(host: HostName): string {
  return `${host}.bound.sh`;
}

/** What a gateway has published for the installed hooks of a host. */
export interface PublishedHooks {
  /** Says which session drives the run from now on; undefined once that has ended. */
  drivenBy(session: string | undefined): void;
  /** Ends it, unless another gateway has taken the place. The session that drives the run stays bound, unless it `isReleased`. */
  end({ isReleased }: { readonly isReleased: boolean }): void;
}

/** Lets the installed hooks of a host reach this gateway. One that was killed leaves its file, and the hooks refuse every call. */
export function publishHooks(folder: string, options: LauncherOptions): PublishedHooks {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const { host } = options;
  const path = join(folder, hookFileName(host));
  const bound = join(folder, boundFileName(host));
  // It has the token of this gateway.
  const text = host === "opencode" ? opencodePlugin(options) : launcherScript(options);
  writeWhole(path, text);
  return {
    drivenBy(session) {
      if (session === undefined) rmSync(bound, { force: true });
      // Before its first call is decided, so that a killed gateway leaves it too. An opencode that has loaded its plugin needs none.
      else if (host !== "opencode") writeWhole(bound, boundScript(host, session));
    },
    end({ isReleased }) {
      if (readIfThere(path) !== text) return;
      if (isReleased) rmSync(bound, { force: true });
      rmSync(path);
      removeEmptyFolders([folder, dirname(folder)]);
    },
  };
}

function writeWhole(path: string, text: string): void {
  const draft = `${path}.${process.pid}.tmp`;
  writeFileSync(draft, text, { mode: 0o600, flag: "wx" });
  renameSync(draft, path);
}

/** Removes what gateways left in their folder for a host, and the folder if nothing else is in it. None may be active. */
export function removePublished(folder: string, host: HostName): void {
  const own = [hookFileName(host), boundFileName(host)];
  // With drafts that were not finished.
  for (const name of readdirSync(folder)) if (own.some((one) => name.startsWith(one))) rmSync(join(folder, name));
  removeEmptyFolders([folder, dirname(folder)]);
}
