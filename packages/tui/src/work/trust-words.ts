import { relative } from "node:path";
import type { SecurityMode } from "@sluice/core";
import type { CodeDigests } from "../project/code.ts";
import type { ProjectSettings } from "../project/read-config.ts";
import type { TrustState } from "../project/trust.ts";
import { count, oneLine } from "../words.ts";

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
