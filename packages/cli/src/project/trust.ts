import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import {
  digestOf,
  field,
  isJsonObject,
  type Json,
  messageOf,
  parseJson,
  type SecurityMode,
  SluiceError,
  sha256,
} from "@sluice/core";
import type { FileDigest } from "@sluice/stages";
import { type Environment, stateFolder } from "@sluice/tui/user";
import { count, oneLine } from "@sluice/view/words";
import type { CodeDigests } from "./code.ts";
import type { ProjectSettings } from "./read-config.ts";

/** Whether the user trusted a folder's code as it is now. */
export type TrustState =
  | { readonly kind: "trusted" }
  /** Trusted as it was: these files are other, new or gone. */
  | { readonly kind: "changed"; readonly files: readonly string[] }
  | { readonly kind: "unknown" };

/** Whose code may be loaded: config and pipelines run with the user's rights. */
export interface Trust {
  stateOf(root: string, code: CodeDigests): TrustState;
  /** Whether it was ever trusted, in whatever state. */
  knows(root: string): boolean;
  /** Trusts these files as they were read. Returns why it could not be remembered, if so. */
  grant(root: string, code: CodeDigests): string | undefined;
}

/** Trust is kept outside of all projects, by folder and digests, so that no project can grant it to itself. */
export function createTrust(env: Environment): Trust {
  const folder = stateFolder(env);
  const file = join(folder, "trust.json");
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
        mkdirSync(folder, { recursive: true, mode: 0o700 });
        const draft = `${file}.${process.pid}`;
        writeFileSync(draft, `${JSON.stringify({ version: 1, folders }, null, 2)}\n`, { mode: 0o600 });
        renameSync(draft, file);
        return undefined;
      } catch (thrown) {
        return `the trust cannot be remembered: ${messageOf(thrown)}`;
      }
    },
  };
}

/** No file is no trust; one that cannot be read is an error, since writing would lose what is in it. */
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
  return new SluiceError("Session", "trust_unreadable", `${file} cannot be read (${why}); mend it or move it away`);
}

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

const MOST_FILES = 20;

/** What somebody is asked before a folder's code is loaded for the first time, or after it was changed. */
export function trustQuestion(root: string, code: CodeDigests, state: TrustState): string {
  const changed = new Set(state.kind === "changed" ? state.files : []);
  const files = [...code.keys()].sort((one, other) => Number(changed.has(other)) - Number(changed.has(one)));
  const gone = [...changed].filter((file) => !code.has(file));
  const lines = [
    ...files
      .slice(0, MOST_FILES)
      .map((file) => `  ${relative(root, file)}${changed.has(file) ? "  (changed or new)" : ""}`),
    ...(files.length > MOST_FILES ? [`  and ${count(files.length - MOST_FILES, "more file")}`] : []),
    ...gone.map((file) => `  ${relative(root, file)}  (gone)`),
  ];
  const since = state.kind === "changed" ? ", and is not what you trusted" : "";
  return [
    `The code of ${root} runs with your rights${since}:`,
    ...lines.map((line) => oneLine(line, 400)),
    "It decides what runs may do here: a config may set the mode, start MCP servers, pass keys on, and say where they are sent.",
  ].join("\n");
}

/** What a config decides that widens what a run may do, in words; '' when there is nothing of that. */
export function powersOf(settings: ProjectSettings, flags: { readonly mode?: SecurityMode | undefined }): string {
  const { mode, allow = [], passEnv, baseUrls, tools, executors, onCall, mcpServers = {} } = settings;
  const names = (list: readonly string[]): string => list.join(", ");
  return [
    ...(mode === undefined || mode === "ask" || flags.mode !== undefined ? [] : [`mode ${mode}`]),
    ...(allow.length === 0 ? [] : [`allows ${names(allow)}`]),
    ...(passEnv.length === 0 ? [] : [`commands get ${names(passEnv)}`]),
    ...Object.entries(baseUrls).map(([provider, url]) => `${provider} is at ${url}`),
    ...(tools.length === 0 ? [] : [`tools ${names(tools.map(({ name }) => name))}`]),
    ...(Object.keys(mcpServers).length === 0 ? [] : [`MCP servers ${names(Object.keys(mcpServers))}`]),
    ...(executors.length === 0 ? [] : [`kinds of state ${names(executors.map(({ kind }) => kind))}`]),
    ...(onCall === undefined ? [] : ["a guard hook"]),
  ].join("; ");
}
