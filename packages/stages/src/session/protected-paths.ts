import { existsSync, lstatSync, readdirSync, readlinkSync, realpathSync, statSync } from "node:fs";
import { dirname, join, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import type { McpServers } from "../tools/mcp/config.ts";

/** Where links lead that stand for what every workspace protects by name: the gate sees real paths only. */
export function linkedPaths(root: string): readonly string[] {
  const settings = readdirSync(root).filter((name) => /^sluice\.config\./i.test(name));
  const names = [".git", ".sluice", join(".sluice", "pipelines"), ...settings];
  return names.flatMap((name) => targetsOf(join(root, name), 0));
}

/** Where Sluice itself is installed, with what it is made of: some of it is loaded only when it is needed, after runs have begun. */
export function ownCode(): readonly string[] {
  const here = realpathSync(fileURLToPath(import.meta.url));
  const names = here.split(sep);
  const installed = names.indexOf("node_modules");
  if (installed !== -1) return [names.slice(0, installed + 1).join(sep)];
  // A checkout: all its packages, and theirs.
  const packages = resolve(dirname(here), "../../..");
  return [packages, join(dirname(packages), "node_modules")];
}

/** Files that MCP servers are started from: whoever writes one decides what is started the next time, with the server's keys. */
export function serverFiles(servers: McpServers, root: string): readonly string[] {
  return Object.values(servers).flatMap((server) => {
    if ("url" in server) return [];
    const { command, args = [], cwd = "." } = server;
    const named = args.flatMap((arg) => [arg, arg.slice(arg.indexOf("=") + 1)]).map((arg) => resolve(root, cwd, arg));
    // A bare command is looked for in PATH, as a server's start does it.
    return [...(command.includes("/") ? [resolve(root, command)] : []), ...named]
      .filter(isFile)
      .map((path) => realpathSync(path));
  });
}

function isFile(path: string): boolean {
  // First: what is no path at all, such as a program given as an argument, is not there.
  return existsSync(path) && statSync(path).isFile();
}

/** Every step of a chain of links, since one that leads to nothing yet can be made to lead somewhere. */
function targetsOf(path: string, depth: number): readonly string[] {
  const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
  if (!isLink || depth > 40) return [];
  const target = resolve(realpathSync(dirname(path)), readlinkSync(path));
  return [target, ...realOf(target), ...targetsOf(target, depth + 1)];
}

function realOf(path: string): readonly string[] {
  try {
    return [realpathSync(path)];
  } catch {
    // Nothing is there yet: the path itself is what would be made.
    return [];
  }
}
