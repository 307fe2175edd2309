import { lstatSync, readdirSync, realpathSync } from "node:fs";
import { findPackageJSON } from "node:module";
import { dirname, join, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { linksOn, outsideFirst, resolveReal } from "../tools/files/paths.ts";
import type { StartedCommand } from "../tools/files/started-files.ts";
import type { McpServers } from "../tools/mcp/config.ts";

/** In any case, since some file systems ignore it. */
const PROTECTED = /^(?:\.git|\.sluice|sluice\.config\..*)$/is;

/** What may be a link inside a protected folder. */
const WITHIN: Readonly<Record<string, readonly string[]>> = {
  ".sluice": ["pipelines"],
  ".git": ["hooks", "config", "info"],
};

/** What links among the protected names of the workspace lead to, and links on the way, because the gate checks real paths only. */
export function linkedPaths(root: string): readonly string[] {
  const own = readdirSync(root, { withFileTypes: true }).filter(({ name }) => PROTECTED.test(name));
  const paths = own.flatMap((entry) => {
    const path = join(root, entry.name);
    const within = entry.isDirectory() ? (WITHIN[entry.name.toLowerCase()] ?? []) : [];
    return [path, ...within.map((inner) => join(path, inner))];
  });
  return paths
    .filter((path) => lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true)
    .flatMap((path) => {
      const target = resolveReal(path, root);
      return [...linksOn(path).slice(1), ...(target.ok ? [target.real] : [])];
    });
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
export function startedServers(servers: McpServers, PATH: string | undefined, root: string) {
  return Object.values(servers).flatMap((server): readonly StartedCommand[] => {
    if ("url" in server) return [];
    const { command, args = [], cwd } = server;
    return [{ command: [command, ...args], cwd, path: server.env?.PATH ?? (PATH && outsideFirst(PATH, root)) }];
  });
}
