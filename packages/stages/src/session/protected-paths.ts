import { existsSync, lstatSync, readdirSync, readlinkSync, realpathSync, statSync } from "node:fs";
import { findPackageJSON } from "node:module";
import { dirname, join, resolve, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { existing, resolveReal } from "../tools/files/paths.ts";
import type { McpServers } from "../tools/mcp/config.ts";

/** In any case, since some file systems ignore it. */
const PROTECTED = /^(?:\.git|\.sluice|sluice\.config\..*)$/is;

/** Targets of symbolic links among the protected names of the workspace, because the gate checks real paths only. */
export function linkedPaths(root: string): readonly string[] {
  const own = readdirSync(root).filter((name) => PROTECTED.test(name));
  const names = own.flatMap((name) => (name.toLowerCase() === ".sluice" ? [name, join(name, "pipelines")] : [name]));
  return names.flatMap((name) => targetsOf(join(root, name), 0));
}

/** Where Sluice and its dependencies are installed: parts of them are loaded after runs have started. */
export function ownCode(): readonly string[] {
  const here = realpathSync(fileURLToPath(import.meta.url));
  const names = here.split(sep);
  const installed = names.indexOf("node_modules");
  if (installed !== -1) return [names.slice(0, installed + 1).join(sep)];
  // A checkout of the repository.
  const manifest = findPackageJSON(pathToFileURL(here));
  if (manifest === undefined) throw new Error(`${here} belongs to no package`);
  const packages = dirname(dirname(manifest));
  // `bin` has the launcher that users put on their PATH.
  return [packages, ...["node_modules", "bin"].map((name) => join(dirname(packages), name))];
}

/** Files that MCP servers are started from: a run that wrote one would decide what starts next with the server's keys. */
export function serverFiles(servers: McpServers, root: string): readonly string[] {
  return Object.values(servers).flatMap((server) => {
    if ("url" in server) return [];
    const { command, args = [], cwd = "." } = server;
    return startedFiles([command, ...args], root, cwd);
  });
}

/**
 * The files that a command names: its program, and arguments such as `server.mjs` and `--config=a.json`. Also those that do not exist
 * yet, such as the output of a build, if they are written as a path.
 */
export function startedFiles([program = "", ...args]: readonly string[], root: string, cwd = "."): readonly string[] {
  // A bare program is resolved by PATH.
  const own = program.includes("/") ? [resolve(root, program)] : [];
  const named = args.flatMap((arg) => [arg, arg.slice(arg.indexOf("=") + 1)]);
  const files = named.filter((arg) => MISSING_FILE.test(arg) || isFile(resolve(root, cwd, arg)));
  return [...own, ...files.map((arg) => resolve(root, cwd, arg))].flatMap((path) => {
    if (isFile(path)) return [realpathSync(path)];
    const resolution = resolveReal(path, root);
    return resolution.ok && !resolution.exists ? [resolution.real] : [];
  });
}

/** An argument that names code, whether it exists or not. */
const MISSING_FILE = /^[\w./@-]+\/[\w.@-]+\.(?:[cm]?[jt]sx?|py|rb|sh|pl|php|lua|jar|exe)$/;

function isFile(path: string): boolean {
  return existsSync(path) && statSync(path).isFile();
}

/** Every step of a chain of links, including dangling ones, whose target could be created later. */
function targetsOf(path: string, depth: number): readonly string[] {
  const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
  if (!isLink || depth > 40) return [];
  const target = resolve(realpathSync(dirname(path)), readlinkSync(path));
  return [target, ...existing(target), ...targetsOf(target, depth + 1)];
}
