import { existsSync, statSync } from "node:fs";
import { dirname, extname, isAbsolute, join, resolve } from "node:path";
import type { Sandbox, SandboxPlan } from "../../../sandbox/wall.ts";
import { contains, isProgram } from "../../files/paths.ts";
import type { McpStdioServer } from "../config.ts";

/** The wall that servers of a session are started behind, and what it keeps from them. */
export interface ServerWall {
  readonly sandbox: Sandbox;
  /** The run store and what else nobody sees, as in the plans of commands; asked at each start. */
  readonly plan: () => Pick<SandboxPlan, "absent" | "readOnly">;
}

/** What a server's process is started as. */
export interface ServerProcess {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

/** Files that are run or loaded, and not worked on. */
const CODE = new Set([".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".py", ".rb", ".php", ".sh", ".jar", ".wasm"]);
/** What lies at the top of somebody's project. */
const PROJECTS = ["package.json", "pyproject.toml", "go.mod", "Cargo.toml", "Gemfile", "composer.json"];

/** Whether a server is to be behind the wall, as things are when it starts first: it stays so. */
export function isWalled({ sandbox }: McpStdioServer, wall: ServerWall | undefined): boolean {
  return sandbox !== false && wall?.sandbox.wall !== undefined;
}

/**
 * The same process behind the wall. A server works on the workspace and on what its settings name: these are writable, its own
 * code is not. Rejects with Error when it cannot be started so.
 */
export async function wallServer(
  process: ServerProcess,
  config: McpStdioServer,
  { root, wall }: { readonly root: string; readonly wall: ServerWall },
): Promise<ServerProcess> {
  const { file, args, cwd, env } = process;
  const program = findProgram(process);
  // Behind the wall nothing would say which of the two is missing.
  if (program === undefined || !existsSync(cwd)) throw new Error(`${file} could not be started in ${cwd}: ENOENT`);
  const named = args.flatMap((arg) => [arg, arg.slice(arg.indexOf("=") + 1)]);
  const paths = [cwd, ...named.filter((path) => isAbsolute(path) && existsSync(path))];
  const isCode = (path: string): boolean => statSync(path).isFile() && CODE.has(extname(path));
  const code = [program, ...paths.filter(isCode)].filter((path) => !contains(root, path));
  const { absent, readOnly } = wall.plan();
  const plan: SandboxPlan = {
    root,
    reads: ["", ...code.map(projectOf)],
    writes: ["", ...paths.filter((path) => !isCode(path))],
    scratch: [],
    network: config.network ?? true,
    absent,
    readOnly: [...readOnly, ...code],
  };
  const wrapped = await wall.sandbox.wrap({ file, args, cwd, env }, plan);
  return { ...process, ...wrapped };
}

/** As a process is started: a bare name is looked for in PATH. */
function findProgram({ file, cwd, env }: ServerProcess): string | undefined {
  if (file.includes("/")) return isProgram(resolve(cwd, file)) ? resolve(cwd, file) : undefined;
  const places = (env.PATH ?? "").split(":").map((folder) => join(resolve(cwd, folder), file));
  return places.find(isProgram);
}

/** What a file of code needs lies beside it: in the outermost `node_modules`, or in the project that it is a part of. */
function projectOf(file: string): string {
  const modules = file.indexOf("/node_modules/");
  if (modules !== -1) return file.slice(0, modules + "/node_modules".length);
  for (let folder = dirname(file); folder !== dirname(folder); folder = dirname(folder))
    if (PROJECTS.some((name) => existsSync(join(folder, name)))) return folder;
  return file;
}
