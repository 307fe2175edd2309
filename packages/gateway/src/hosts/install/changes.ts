import { mkdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { field, isJsonObject, type Json, parseJson, SluiceError } from "@sluice/core";
import { messageOf, sha256 } from "@sluice/core/runtime";
import { readIfThere } from "./files.ts";
import type { FileEdit } from "./installation.ts";
import { HOOK_MARKER } from "./installed-hook.ts";
import { editJsonText, type JsonEdit, jsonValue, parseJsonText, removeFromJsonText } from "./json-text.ts";
import { withBlock, withoutBlock } from "./marked-block.ts";
import { OWN_SERVER } from "./own-server.ts";

/** A file before and after; undefined where it does not exist. */
export interface FileChange {
  readonly path: string;
  readonly before: string | undefined;
  readonly after: string | undefined;
}

/** What an installation changes. Installing twice changes nothing the second time. Throws Validation `host_config_invalid`. */
export function changesToInstall(edits: readonly FileEdit[]): readonly FileChange[] {
  return edits
    .map((edit) => {
      const before = readIfThere(edit.path);
      return { path: edit.path, before, after: inFile(edit.path, () => applied(edit, before)) };
    })
    .filter(({ before, after }) => before !== after);
}

function applied(edit: FileEdit, before: string | undefined): string {
  switch (edit.kind) {
    case "whole":
      return edit.text;
    case "block":
      return withBlock(before ?? "", edit.lines);
    case "json": {
      if (edit.plain === true && before !== undefined && !parseJson(before).ok) throw notPlain();
      // An installation that is there already keeps its place in the file.
      if (before !== undefined && edit.edits.every((one) => holds(jsonValue(parseJsonText(before)), one)))
        return before;
      return edit.edits.reduce(editJsonText, before === undefined ? "{}\n" : withoutOurs(before));
    }
  }
}

function notPlain(): SluiceError {
  const message =
    "it is not plain JSON, and this host ignores such a file, hooks included; remove its comments and trailing commas first";
  return new SluiceError("Validation", "host_config_invalid", message);
}

/** Whether a file has what an edit would add. */
function holds(root: Json, { path, value, append }: JsonEdit): boolean {
  const found = path.reduce<Json | undefined>(field, root);
  const wanted = JSON.stringify(value);
  if (append !== true) return JSON.stringify(found) === wanted;
  return Array.isArray(found) && found.some((item) => JSON.stringify(item) === wanted);
}

/** What a removal changes. A file that is unchanged since becomes what it was; another one loses our entries only. */
export function changesToRemove(edits: readonly FileEdit[], notes: readonly InstallNote[]): readonly FileChange[] {
  return edits.flatMap((edit): readonly FileChange[] => {
    const before = readIfThere(edit.path);
    if (before === undefined) return [];
    const note = notes.findLast(({ path }) => path === edit.path);
    const after =
      note !== undefined && note.installed === sha256(before)
        ? note.before
        : inFile(edit.path, () => withoutInstalled(edit, before));
    return before === after ? [] : [{ path: edit.path, before, after }];
  });
}

function withoutInstalled(edit: FileEdit, before: string): string | undefined {
  if (edit.kind === "whole") return before.includes(HOOK_MARKER) ? undefined : before;
  if (edit.kind === "block") return emptyIsNone(withoutBlock(before));
  return emptyIsNone(withoutOurs(before));
}

function emptyIsNone(text: string): string | undefined {
  return text.trim() === "" || text.trim() === "{}" ? undefined : text;
}

function withoutOurs(text: string): string {
  return removeFromJsonText(text, (path, value) => {
    const [section, name = ""] = path;
    if (path.length === 2 && (section === "mcpServers" || section === "mcp") && OWN_SERVER.test(name))
      return isOurServer(value);
    if (section === "enabledMcpjsonServers")
      return path.length === 2 && typeof value === "string" && OWN_SERVER.test(value);
    return section === "hooks" && path.length === 3 && JSON.stringify(value).includes(HOOK_MARKER);
  });
}

function isOurServer(server: Json): boolean {
  return JSON.stringify(server).includes('"gateway"');
}

/** A file as an installation left it, and what it was before. */
export interface InstallNote {
  readonly path: string;
  /** Undefined if the file did not exist. */
  readonly before: string | undefined;
  /** The digest of the file after the installation. */
  readonly installed: string;
  /** Folders that the installation made, the innermost first. */
  readonly folders: readonly string[];
}

/** Makes the changes. Each file is replaced at once; a file that changed since the changes were shown stops it. */
export function applyChanges(changes: readonly FileChange[]): readonly InstallNote[] {
  return changes.map(({ path, before, after }) => {
    if (readIfThere(path) !== before)
      throw new SluiceError("Validation", "host_config_changed", `${path} was changed meanwhile; try again`);
    if (after === undefined) {
      rmSync(path);
      return { path, before, installed: "", folders: [] };
    }
    const folders = missingFolders(dirname(path));
    mkdirSync(dirname(path), { recursive: true });
    const draft = `${path}.${process.pid}.tmp`;
    const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0o644;
    writeFileSync(draft, after, { flag: "wx", mode: mode & 0o777 });
    renameSync(draft, path);
    return { path, before, installed: sha256(after), folders };
  });
}

function missingFolders(folder: string): readonly string[] {
  if (statSync(folder, { throwIfNoEntry: false }) !== undefined) return [];
  const parent = dirname(folder);
  return parent === folder ? [] : [folder, ...missingFolders(parent)];
}

function inFile<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (cause) {
    throw new SluiceError("Validation", "host_config_invalid", `${path}: ${messageOf(cause)}`, { cause });
  }
}

/** The notes of installations, in the user's state folder: by key, such as host and folder. */
export function installNotes(stateFolder: string) {
  const file = join(stateFolder, "hooks.json");
  const readAll = (): Readonly<Record<string, Json>> => {
    const text = readIfThere(file);
    const parsed = text === undefined ? undefined : parseJson(text);
    return parsed?.ok === true && isJsonObject(parsed.value) ? parsed.value : {};
  };
  const writeAll = (all: Readonly<Record<string, Json>>): void => {
    if (Object.keys(all).length === 0) {
      rmSync(file, { force: true });
      return;
    }
    mkdirSync(stateFolder, { recursive: true, mode: 0o700 });
    const draft = `${file}.${process.pid}.tmp`;
    // What a settings file held may be secret.
    writeFileSync(draft, `${JSON.stringify(all, null, 2)}\n`, { mode: 0o600 });
    renameSync(draft, file);
  };
  return {
    read: (key: string): readonly InstallNote[] => {
      const found = readAll()[key];
      return Array.isArray(found) ? found.flatMap(noteIn) : [];
    },
    write(key: string, notes: readonly InstallNote[]): void {
      const stored = notes.map(({ before, ...note }) => ({
        ...note,
        folders: [...note.folders],
        before: before ?? null,
      }));
      writeAll({ ...readAll(), [key]: stored });
    },
    remove(key: string): void {
      const { [key]: _removed, ...rest } = readAll();
      writeAll(rest);
    },
  };
}

function noteIn(value: Json): readonly InstallNote[] {
  const [path, before, installed, folders] = ["path", "before", "installed", "folders"].map((key) => field(value, key));
  if (typeof path !== "string" || typeof installed !== "string") return [];
  return [
    {
      path,
      installed,
      before: typeof before === "string" ? before : undefined,
      folders: Array.isArray(folders) ? folders.filter((one) => typeof one === "string") : [],
    },
  ];
}
