import { isJsonObject, type Json, type JsonObject } from "@sluice/core";
import type { AdapterOptions, MappedCall } from "../hook-adapter.ts";
import { readPatch } from "../tools/apply-patch.ts";
import { type Fields, fieldsOf, nativePath, RefusedCall, shown } from "./fields.ts";

/** How a host's tools map to the tools of the gate: by name, the reading of an input. */
export type ToolTable = ReadonlyMap<string, ReadTool>;
export type ReadTool = (fields: Fields, cwd: string) => MappedCall;
/** Maps a call by its name at the host. */
export type MapTool = (tool: string, input: JsonObject, cwd: string) => MappedCall;

/** Maps a call, or says why it cannot be judged. `common` are members of every call that change nothing. */
export function mapCall(
  table: ToolTable,
  tool: string,
  input: JsonObject,
  cwd: string,
  common: readonly string[] = [],
): MappedCall {
  const read = table.get(tool);
  if (read === undefined) return { kind: "refused", reason: `${shown(tool)} is a tool that the gate does not know` };
  try {
    const fields = fieldsOf(input);
    fields.options(...common);
    const call = read(fields, cwd);
    if (call.kind !== "harmless") fields.done();
    return call;
  } catch (thrown) {
    if (!(thrown instanceof RefusedCall)) throw thrown;
    return { kind: "refused", reason: thrown.message };
  }
}

/** The same for hosts that name the tools of MCP servers `mcp__server__tool`. */
export function mapClaudeStyle(table: ToolTable, { ownServers = [] }: AdapterOptions): MapTool {
  return (tool, input, cwd) => {
    const mcp = doubleNames(tool);
    return mcp === undefined ? mapCall(table, tool, input, cwd) : mcpCall(mcp.server, mcp.tool, input, ownServers);
  };
}

/** The same for hosts that join the names of a server and its tool by one of `joints`. */
export function mapJoined(
  table: ToolTable,
  joints: readonly string[],
  { mcpServers = [], ownServers = [] }: AdapterOptions,
): MapTool {
  const servers = [...new Set([...mcpServers, ...ownServers])];
  return (tool, input, cwd) => {
    const mcp = table.has(tool)
      ? undefined
      : joints.map((joint) => joinedNames(tool, joint, servers)).find((found) => found !== undefined);
    return mcp === undefined ? mapCall(table, tool, input, cwd) : mcpCall(mcp.server, mcp.tool, input, ownServers);
  };
}

export function call(tool: string, input: JsonObject, spans = false): MappedCall {
  return { kind: "call", tool, input, spans };
}

/** A reading of one file; `paths` are the names of the same member. */
export function readTool(paths: readonly string[], ...options: readonly string[]): ReadTool {
  return (fields, cwd) =>
    call("Read", { file_path: nativePath(fields.oneOf(...paths), cwd), ...fields.options(...options) });
}

export function writeTool(path: string, content: string): ReadTool {
  return (fields, cwd) =>
    call("Write", { file_path: nativePath(fields.text(path), cwd), content: fields.text(content) });
}

/** A replacement of one text, or of `all` its occurrences if the tool has this member. */
export function editTool(
  path: string,
  { old, now, all }: { readonly old: string; readonly now: string; readonly all?: string },
): ReadTool {
  return (fields, cwd) =>
    replacement(nativePath(fields.text(path), cwd), {
      old: fields.text(old),
      now: fields.text(now),
      all: all !== undefined && fields.flag(all),
    });
}

export const notebookTool: ReadTool = (fields, cwd) => {
  const file_path = nativePath(fields.text("notebook_path"), cwd);
  const { options: cell = {} } = fields.options("cell_id", "new_source", "cell_type", "edit_mode");
  return call("Edit", { file_path, cell });
};

/** A list of a folder; `paths` are the names of the same member. */
export function listTool(...paths: readonly string[]): ReadTool {
  return (fields, cwd) => call("Glob", { pattern: "*", path: nativePath(fields.oneOf(...paths), cwd) });
}

export const fetchTool: ReadTool = (fields) => fetched([fields.text("url")]);

export function webSearchTool(...options: readonly string[]): ReadTool {
  return (fields) => call("WebSearch", { query: fields.text("query"), ...fields.options(...options) });
}

/** The tool with further members, which change nothing that the gate judges and are not kept. */
export function ignoring(names: readonly string[], read: ReadTool): ReadTool {
  return (fields, cwd) => {
    fields.options(...names);
    return read(fields, cwd);
  };
}

export function harmless(...names: readonly string[]): readonly [string, ReadTool][] {
  return names.map((name): [string, ReadTool] => [name, () => ({ kind: "harmless" })]);
}

interface ShellFields {
  readonly background?: boolean;
  /** The folder that the call asks for. */
  readonly folder?: string | undefined;
  readonly options?: JsonObject;
}

export function shell(
  command: string,
  cwd: string,
  { background = false, folder, options }: ShellFields = {},
): MappedCall {
  const input: JsonObject = {
    command,
    folder: folder === undefined || folder === "" ? cwd : nativePath(folder, cwd),
    ...(background ? { background } : {}),
    ...(options === undefined ? {} : { options }),
  };
  return call("Bash", input, background);
}

/** A replacement of text. An empty old text creates or fills the file. */
function replacement(
  file_path: string,
  { old, now, all }: { readonly old: string; readonly now: string; readonly all: boolean },
): MappedCall {
  if (old === "") return call("Write", { file_path, content: now });
  return call("Edit", { file_path, old_string: old, new_string: now, ...(all ? { replace_all: true } : {}) });
}

/** Several replacements in one file, each in the result of the one before. */
export function replacements(file_path: string, edits: readonly Json[] | undefined): MappedCall {
  if (edits === undefined || edits.length === 0) throw new RefusedCall("edits is missing or empty");
  const read = edits.map((edit) => {
    if (!isJsonObject(edit)) throw new RefusedCall("edits is not a list of objects");
    const fields = fieldsOf(edit);
    const old_string = fields.oneOf("old_string", "oldString");
    const new_string = fields.oneOf("new_string", "newString");
    const all = [fields.flag("replace_all"), fields.flag("replaceAll")].includes(true);
    fields.done();
    return { old_string, new_string, ...(all ? { replace_all: true } : {}) };
  });
  const creates = read.some(({ old_string }) => old_string === "");
  return call(creates ? "Write" : "Edit", { file_path, edits: read });
}

/** A patch that creates a file is judged as Write, any other as Edit. */
export function patch(text: string, folder: string): MappedCall {
  const read = readPatch(text);
  if (!read.ok) throw new RefusedCall(read.reason);
  for (const file of read.files) {
    nativePath(file.path, folder);
    if (file.kind === "update" && file.to !== undefined) nativePath(file.to, folder);
  }
  const creates = read.files.some((file) => file.kind === "add" || (file.kind === "update" && file.to !== undefined));
  return call(creates ? "Write" : "Edit", { patch: text, folder });
}

interface Places {
  readonly path: string;
  /** Further files or folders. */
  readonly more?: readonly string[];
}

/** The files and folders to search; the agent's own folder if none is named. */
function placesIn(fields: Fields, cwd: string, names: readonly string[]): Places {
  const given = names.map((name) => fields.oneOrMore(name)).filter((paths) => paths !== undefined);
  if (given.length > 1) throw new RefusedCall(`${names.join(" and ")} are the same setting`);
  const [path = cwd, ...more] = (given[0] ?? []).filter((one) => one !== "").map((one) => nativePath(one, cwd));
  return more.length === 0 ? { path } : { path, more };
}

/**
 * Folders in which a glob pattern looks, from the folder it is relative to. Refuses a pattern that can name something outside them.
 */
export function globFolder(pattern: string, folder: string): string {
  if (/(?:^|[/{,|(])\.\.(?:[/},|)]|$)/.test(pattern) || /[{,|(]\s*[/~]/.test(pattern) || pattern.includes("\\"))
    throw new RefusedCall(`${shown(pattern)} can match files outside its folder; use a path and a plain pattern`);
  const fixed = pattern.slice(0, (/[*?[{(!+@]/.exec(pattern)?.index ?? pattern.length) + 1);
  const base = fixed.includes("/") ? fixed.slice(0, fixed.lastIndexOf("/") + 1) : "";
  return base === "" ? folder : nativePath(base, folder);
}

export function glob(fields: Fields, cwd: string, ...paths: readonly string[]): MappedCall {
  const pattern = fields.text("pattern");
  const { path, more = [] } = placesIn(fields, cwd, paths);
  const folders = [path, ...more].map((folder) => globFolder(pattern, folder));
  return call("Glob", { pattern, path: folders[0] ?? cwd, ...(more.length === 0 ? {} : { more: folders.slice(1) }) });
}

/** A search in file contents; `filters` are patterns of file names. */
export function search(
  fields: Fields,
  cwd: string,
  {
    paths,
    filters,
    options,
  }: { readonly paths: readonly string[]; readonly filters: readonly string[]; readonly options: readonly string[] },
): MappedCall {
  const pattern = fields.text("pattern");
  const places = placesIn(fields, cwd, paths);
  for (const filter of filters) globFolder(fields.optionalText(filter) ?? "", places.path);
  const given = filters.map((filter) => fields.optionalText(filter)).find((filter) => filter !== undefined);
  return call("Grep", {
    pattern,
    ...places,
    ...(given === undefined ? {} : { glob: given }),
    ...fields.options(...options),
  });
}

export function fetched(urls: readonly string[]): MappedCall {
  for (const url of urls) {
    const read = URL.parse(url);
    if (read === null || !/^https?:$/.test(read.protocol) || read.username !== "" || read.password !== "")
      throw new RefusedCall(`${shown(url)} is not an http or https address without a password`);
  }
  if (urls.length === 0) throw new RefusedCall("the call names no address");
  return call("WebFetch", { urls: [...urls] });
}

export function agent(fields: Fields, ...names: readonly string[]): MappedCall {
  const { options = {} } = fields.options(...names);
  return call("Agent", { options }, true);
}

/** Characters that the names of a server and a tool may have. */
const SERVER = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;
const TOOL = /^[A-Za-z0-9_.-]{1,64}$/;

/** A call of an MCP server's tool. */
export function mcpCall(server: string, tool: string, input: JsonObject, ownServers: readonly string[]): MappedCall {
  if (!SERVER.test(server) || !TOOL.test(tool) || server.includes("__"))
    return {
      kind: "refused",
      reason: `${shown(server)} and ${shown(tool)} are not the names of an MCP server and its tool`,
    };
  if (ownServers.includes(server)) return { kind: "own" };
  return call(`mcp__${server}__${tool}`, input);
}

/** The server and the tool in `mcp__server__tool`: the first `__` ends the server's name. */
function doubleNames(name: string): { readonly server: string; readonly tool: string } | undefined {
  const [, server, tool] = /^mcp__((?:(?!__).)+)__(.+)$/s.exec(name) ?? [];
  return server === undefined || tool === undefined ? undefined : { server, tool };
}

/** The server and the tool in a name that joins them with `joint`, if exactly one known server fits. */
function joinedNames(
  name: string,
  joint: string,
  servers: readonly string[],
): { readonly server: string; readonly tool: string } | undefined {
  const fitting = servers.filter((server) => name.startsWith(`${server}${joint}`));
  const [server] = fitting;
  if (server === undefined || fitting.length > 1) return undefined;
  return { server, tool: name.slice(server.length + joint.length) };
}
