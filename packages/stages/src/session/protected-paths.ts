import { lstatSync, readdirSync, readlinkSync, realpathSync } from "node:fs";
import { findPackageJSON } from "node:module";
import { dirname, join, resolve, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { existing } from "../tools/files/paths.ts";
import type { StartedCommand } from "../tools/files/started-files.ts";
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

/** How the MCP servers are started. */
export function startedServers(servers: McpServers, env: Readonly<Record<string, string | undefined>>) {
  return Object.values(servers).flatMap((server): readonly StartedCommand[] => {
    if ("url" in server) return [];
    const { command, args = [], cwd } = server;
    return [{ command: [command, ...args], cwd, path: server.env?.PATH ?? env.PATH }];
  });
}

/** Every step of a chain of links, including dangling ones, whose target could be created later. */
function targetsOf(path: string, depth: number): readonly string[] {
  const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
  if (!isLink || depth > 40) return [];
  const target = resolve(realpathSync(dirname(path)), readlinkSync(path));
  return [target, ...existing(target), ...targetsOf(target, depth + 1)];
}
