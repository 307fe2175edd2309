import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { field, isJsonObject, type Json, type JsonObject, parseJson, SluiceError } from "@sluice/core";
import type { SecurityMode } from "@sluice/core/gate";
import { digestOf, messageOf, sha256 } from "@sluice/core/runtime";
import type { FileDigest } from "@sluice/stages";
import { type Environment, readSettings, stateFolder } from "@sluice/tui/user";
import { count, oneLine } from "@sluice/view/words";
import type { CodeDigests } from "./code.ts";
import type { ProjectSettings } from "./load-config.ts";
import { digestNow } from "./modules.ts";

/** Whether the user trusts the current code of a folder. */
export type TrustState =
  | { readonly kind: "trusted" }
  /** These files were changed, added or removed since the folder was trusted. */
  | { readonly kind: "changed"; readonly files: readonly string[] }
  | { readonly kind: "unknown" };

export type Trust = ReturnType<typeof createTrust>;

/**
 * The folders whose code may be loaded: config and pipelines run with the user's rights. Trust is stored outside of all projects,
 * by folder and digests, so that no project can grant it to itself.
 */
export function createTrust(env: Environment) {
  const file = join(stateFolder(env), "trust.json");
  const trusted = (root: string): JsonObject | undefined => {
    const known = field(field(readTrust(file), "folders"), root);
    return isJsonObject(known) ? known : undefined;
  };
  return {
    /** Whether the folder was ever trusted. */
    knows: (root: string): boolean => trusted(root) !== undefined,
    /** These files as they were read, and as they are now all others that were trusted with them, such as the modules that they import. */
    codeOf(root: string, entries: CodeDigests): CodeDigests {
      const others = Object.keys(trusted(root) ?? {}).filter((path) => !entries.has(path));
      const now = others.map((path) => [path, digestNow(path)] as const);
      return new Map([
        ...entries,
        ...now.flatMap(([path, digest]) => (digest === undefined ? [] : [[path, digest] as const])),
      ]);
    },
    /** Whether `code`, which is from `codeOf`, is what was trusted. */
    stateOf(root: string, code: CodeDigests): TrustState {
      const known = trusted(root);
      if (known === undefined) return { kind: "unknown" };
      const paths = new Set([...Object.keys(known), ...code.keys()]);
      const files = [...paths].filter((path) => field(known, path) !== code.get(path)).sort();
      return files.length === 0 ? { kind: "trusted" } : { kind: "changed", files };
    },
    /** Trusts these versions of the files. A fault in storing that is reported. */
    grant(root: string, code: CodeDigests, say: Say): void {
      const known = field(readTrust(file), "folders");
      const folders = { ...(isJsonObject(known) ? known : {}), [root]: Object.fromEntries(code) };
      const fault = replaceFile(file, `${JSON.stringify({ version: 1, folders }, null, 2)}\n`);
      if (fault !== undefined) say(`the trust could not be stored: ${fault}`);
    },
  };
}

/** Shows a notice to the user. */
type Say = (text: string) => void;

/** Writes a private file atomically. Returns the error message if that fails. */
function replaceFile(file: string, text: string): string | undefined {
  const draft = `${file}.${process.pid}`;
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(draft, text, { mode: 0o600 });
    renameSync(draft, file);
    return undefined;
  } catch (thrown) {
    return messageOf(thrown);
  }
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

export type NamedFiles = ReturnType<typeof createNamedFiles>;

/**
 * Versions of pipeline files that the user has named on a command line. Stored outside of all projects and stores: a store can
 * come from elsewhere and refer to any file.
 */
export function createNamedFiles(env: Environment, say: Say) {
  const folder = join(stateFolder(env), "named");
  // One note per file, so that concurrent commands do not overwrite each other's notes.
  const noteOf = (file: string): string => join(folder, sha256(file).slice(0, 32));
  return {
    holds: (file: string, code: readonly FileDigest[]): boolean => readNote(noteOf(file)).includes(digestOf(code)),
    remember(file: string, code: readonly FileDigest[]): void {
      // In a process that a run started, no person names a file.
      if (readSettings(env).insideRun !== undefined) return;
      const digest = digestOf(code);
      const note = noteOf(file);
      const known = readNote(note);
      if (known.includes(digest)) return;
      const fault = replaceFile(note, [...known, digest].slice(-KEPT).join("\n"));
      if (fault !== undefined)
        say(`the use of ${file} could not be stored, so resuming its runs will need --trust: ${fault}`);
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
  // Changed files first, and the config, which `code` lists first, before them.
  const files = [...code.keys()].sort((one, other) => Number(changed.has(other)) - Number(changed.has(one)));
  const lines = [
    ...files
      .slice(0, MOST_FILES)
      .map((file) => `  ${relative(root, file)}${changed.has(file) ? "  (changed or new)" : ""}`),
    ...(files.length > MOST_FILES ? [`  and ${count(files.length - MOST_FILES, "more file")}`] : []),
    // Never cut: a rule that is gone must not disappear silently.
    ...[...changed].filter((file) => !code.has(file)).map((file) => `  ${relative(root, file)}  (removed)`),
  ];
  const since = state.kind === "changed" ? ", and has changed since you trusted it" : "";
  return [
    `The code of ${root} runs with your rights${since}:`,
    ...lines.map((line) => oneLine(line, 400)),
    "It controls what runs may do here: a config can set the mode, answer requests, start MCP servers and programs, pass keys to commands, and set where keys are sent.",
  ].join("\n");
}

/** The settings of a config that widen what a run may do, in words; '' if there are none. */
export function powersOf(settings: ProjectSettings, flags: { readonly mode?: SecurityMode | undefined }): string {
  const {
    mode,
    allow = [],
    passEnv,
    baseUrls,
    tools,
    executors,
    interactors,
    notify,
    onCall,
    mcpServers = {},
  } = settings;
  const names = (list: readonly string[]): string => list.join(", ");
  return [
    ...(mode === undefined || mode === "ask" || flags.mode !== undefined ? [] : [`mode ${mode}`]),
    ...(allow.length === 0 ? [] : [`allow ${names(allow)}`]),
    ...(passEnv.length === 0 ? [] : [`${names(passEnv)} for commands`]),
    ...Object.entries(baseUrls).map(([provider, url]) => `the address ${url} for ${provider}`),
    ...(tools.length === 0 ? [] : [`tools ${names(tools.map(({ name }) => name))}`]),
    ...(Object.keys(mcpServers).length === 0 ? [] : [`MCP servers ${names(Object.keys(mcpServers))}`]),
    ...(executors.length === 0 ? [] : [`kinds of state ${names(executors.map(({ kind }) => kind))}`]),
    ...(interactors.length === 0 ? [] : [`answers by ${names(interactors.map(({ name }) => name))}`]),
    ...notify.map(
      ({ command = [], url }) => `notifications to ${url === undefined ? command.join(" ") : new URL(url).host}`,
    ),
    ...(onCall === undefined ? [] : ["a guard hook"]),
  ].join("; ");
}
