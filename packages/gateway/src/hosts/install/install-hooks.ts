import { sha256 } from "@sluice/core/runtime";
import { SERVER_NAME } from "../host.ts";
import {
  applyChanges,
  changesToInstall,
  changesToRemove,
  type FileChange,
  type InstallNote,
  installNotes,
} from "./changes.ts";
import { removeEmptyFolders } from "./files.ts";
import { type InstallRequest, installation, SCOPES } from "./installation.ts";
import { hookFolder, removePublished } from "./published-hooks.ts";

/** A change of settings files that was worked out and not made yet. */
export interface PlannedChange {
  /** Empty if nothing has to change. */
  readonly changes: readonly FileChange[];
  /** Makes the changes. Throws Validation `host_config_changed` if a file changed meanwhile. */
  apply(): void;
}

/** Adds the hooks of a host. Reads files, and writes none until `apply`. Throws Validation `host_config_invalid`. */
export function planInstall(request: InstallRequest): PlannedChange {
  const changes = changesToInstall(installation(request));
  return {
    changes,
    apply() {
      const notes = installNotes(request.stateFolder);
      const key = keyOf(request);
      const known = notes.read(key);
      const made = applyChanges(changes).map((note) => joined(known, note));
      const untouched = known.filter(({ path }) => !made.some((note) => note.path === path));
      notes.write(key, [...untouched, ...made]);
    },
  };
}

/**
 * Removes the hooks of a host: a file that is unchanged since becomes what it was before, or is deleted if there was none. What a
 * gateway left is removed by `removeLeft`.
 */
export function planRemove(request: InstallRequest): PlannedChange {
  const notes = installNotes(request.stateFolder);
  const key = keyOf(request);
  const known = notes.read(key);
  // Which files an installation changes does not depend on the server's name.
  const server = { name: SERVER_NAME, command: ["sluice", "gateway"], env: {} };
  const edits = installation({ ...request, server });
  const changes = changesToRemove(edits, known);
  return {
    changes,
    apply() {
      applyChanges(changes);
      for (const { folders } of known) removeEmptyFolders(folders);
      notes.remove(key);
    },
  };
}

/**
 * Removes what gateways that were killed left for the hooks of a host in a folder, unless hooks of the other scope still need that. None
 * may answer them now.
 */
export function removeLeft(request: InstallRequest): void {
  const notes = installNotes(request.stateFolder);
  const isNeeded = SCOPES.some((scope) => notes.read(keyOf({ ...request, scope })).length > 0);
  if (!isNeeded) removePublished(hookFolder(request.stateFolder, request.workspace), request.host);
}

/** Remembers a file that a host's own program changed for an installation, such as a list of trusted hooks. */
export function noteChange(
  request: InstallRequest,
  { path, before, after }: FileChange & { readonly after: string },
): void {
  const notes = installNotes(request.stateFolder);
  const key = keyOf(request);
  const known = notes.read(key);
  const note = joined(known, { path, before, installed: sha256(after), folders: [] });
  notes.write(key, [...known.filter((one) => one.path !== path), note]);
}

/** A second installation over a file that is unchanged since keeps what was there before the first one. */
function joined(known: readonly InstallNote[], note: InstallNote): InstallNote {
  const first = known.findLast(({ path }) => path === note.path);
  if (first === undefined) return note;
  const isUnchanged = note.before !== undefined && sha256(note.before) === first.installed;
  return { ...note, folders: [...first.folders, ...note.folders], before: isUnchanged ? first.before : note.before };
}

function keyOf({ host, scope, workspace, user }: InstallRequest): string {
  return `${host} ${scope} ${scope === "user" ? user.home : workspace}`;
}
