import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { field, isJsonObject, type Json, parseJson, SluiceError } from "@sluice/core";
import type { SecurityMode } from "@sluice/core/gate";
import { digestOf, messageOf, sha256 } from "@sluice/core/runtime";
import type { FileDigest } from "@sluice/stages";
import { type Environment, stateFolder } from "@sluice/tui/user";
import { count, oneLine } from "@sluice/view/words";
import type { CodeDigests } from "./code.ts";
import type { ProjectSettings } from "./load-config.ts";

/** Whether the user trusts the current code of a folder. */
export type TrustState =
  | { readonly kind: "trusted" }
  /** These files were changed, added or removed since the folder was trusted. */
  | { readonly kind: "changed"; readonly files: readonly string[] }
  | { readonly kind: "unknown" };

/** The folders whose code may be loaded: config and pipelines run with the user's rights. */
export interface Trust {
  stateOf(root: string, code: CodeDigests): TrustState;
  /** Whether the folder was ever trusted. */
  knows(root: string): boolean;
  /** Trusts these versions of the files. Returns the error message if that could not be stored. */
  grant(root: string, code: CodeDigests): string | undefined;
}

/** Trust is stored outside of all projects, by folder and digests, so that no project can grant it to itself. */
export function createTrust(env: Environment): Trust {
  const file = join(stateFolder(env), "trust.json");
  return {
    knows: (root) => isJsonObject(field(field(readTrust(file), "folders"), root)),
    stateOf(root, code) {
      const known = field(field(readTrust(file), "folders"), root);
      if (!isJsonObject(known)) return { kind: "unknown" };
      const paths = new Set([...Object.keys(known), ...code.keys()]);
      const files = [...paths].filter((path) => field(known, path) !== code.get(path)).sort();
      return files.length === 0 ? { kind: "trusted" } : { kind: "changed", files };
    },
    grant(root, code) {
      const known = field(readTrust(file), "folders");
      const folders = { ...(isJsonObject(known) ? known : {}), [root]: Object.fromEntries(code) };
      try {
        replaceFile(file, `${JSON.stringify({ version: 1, folders }, null, 2)}\n`);
        return undefined;
      } catch (thrown) {
        return `the trust could not be stored: ${messageOf(thrown)}`;
      }
    },
  };
}

/** Writes a private file atomically. */
function replaceFile(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const draft = `${file}.${process.pid}`;
  writeFileSync(draft, text, { mode: 0o600 });
  renameSync(draft, file);
}

/** A missing file means no trust; an unreadable one is an error, since writing would lose its content. */
function readTrust(file: string): Json {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (thrown) {
    if (thrown instanceof Error && "code" in thrown && thrown.code === "ENOENT") return {};
    throw unreadable(file, messageOf(thrown));
  }
  const json = parseJson(text);
  if (!json.ok) throw unreadable(file, json.fault);
  return json.value;
}

function unreadable(file: string, why: string): SluiceError {
  return new SluiceError("Session", "trust_unreadable", `${file} cannot be read (${why}); fix it or move it away`);
}

/** Stored versions per file: runs of earlier versions may still be resumed. */
const KEPT = 50;

/** The code of a pipeline file. */
type FileDigests = readonly FileDigest[];

/**
 * Versions of pipeline files that the user has named on a command line. Stored outside of all projects and stores: a store can
 * come from elsewhere and refer to any file.
 */
export interface NamedFiles {
  holds(file: string, code: FileDigests): boolean;
  /** Returns the error message if it could not be stored: then resuming needs --trust. */
  remember(file: string, code: FileDigests): string | undefined;
}

export function createNamedFiles(stateFolder: string): NamedFiles {
  const folder = join(stateFolder, "named");
  // One note per file, so that concurrent commands do not overwrite each other's notes.
  const noteOf = (file: string): string => join(folder, sha256(file).slice(0, 32));
  return {
    holds: (file, code) => readNote(noteOf(file)).includes(digestOf(code)),
    remember(file, code) {
      const digest = digestOf(code);
      const note = noteOf(file);
      const known = readNote(note);
      if (known.includes(digest)) return undefined;
      try {
        replaceFile(note, [...known, digest].slice(-KEPT).join("\n"));
        return undefined;
      } catch (thrown) {
        return `the use of ${file} could not be stored, so resuming its runs will need --trust: ${messageOf(thrown)}`;
      }
    },
  };
}

function readNote(note: string): readonly string[] {
  try {
    return readFileSync(note, "utf8").split("\n");
  } catch (thrown) {
    // A missing or unreadable note means that no version is known.
    if (thrown instanceof Error && "code" in thrown) return [];
    throw thrown;
  }
}

const MOST_FILES = 20;

/** The question before a folder's code is loaded for the first time, or after a change. */
export function trustQuestion(root: string, code: CodeDigests, state: TrustState): string {
  const changed = new Set(state.kind === "changed" ? state.files : []);
  const files = [...code.keys()].sort((one, other) => Number(changed.has(other)) - Number(changed.has(one)));
  const removed = [...changed].filter((file) => !code.has(file));
  const lines = [
    ...files
      .slice(0, MOST_FILES)
      .map((file) => `  ${relative(root, file)}${changed.has(file) ? "  (changed or new)" : ""}`),
    ...(files.length > MOST_FILES ? [`  and ${count(files.length - MOST_FILES, "more file")}`] : []),
    ...removed.map((file) => `  ${relative(root, file)}  (removed)`),
  ];
  const since = state.kind === "changed" ? ", and has changed since you trusted it" : "";
  return [
    `The code of ${root} runs with your rights${since}:`,
    ...lines.map((line) => oneLine(line, 400)),
    "It controls what runs may do here: a config can set the mode, start MCP servers, pass keys to commands, and set where keys are sent.",
  ].join("\n");
}

/** The settings of a config that widen what a run may do, in words; '' if there are none. */
export function powersOf(settings: ProjectSettings, flags: { readonly mode?: SecurityMode | undefined }): string {
  const { mode, allow = [], passEnv, baseUrls, tools, executors, onCall, mcpServers = {} } = settings;
  const names = (list: readonly string[]): string => list.join(", ");
  return [
    ...(mode === undefined || mode === "ask" || flags.mode !== undefined ? [] : [`mode ${mode}`]),
    ...(allow.length === 0 ? [] : [`allow ${names(allow)}`]),
    ...(passEnv.length === 0 ? [] : [`${names(passEnv)} for commands`]),
    ...Object.entries(baseUrls).map(([provider, url]) => `the address ${url} for ${provider}`),
    ...(tools.length === 0 ? [] : [`tools ${names(tools.map(({ name }) => name))}`]),
    ...(Object.keys(mcpServers).length === 0 ? [] : [`MCP servers ${names(Object.keys(mcpServers))}`]),
    ...(executors.length === 0 ? [] : [`kinds of state ${names(executors.map(({ kind }) => kind))}`]),
    ...(onCall === undefined ? [] : ["a guard hook"]),
  ].join("; ");
}
