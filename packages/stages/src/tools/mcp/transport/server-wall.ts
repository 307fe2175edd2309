import { existsSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { contains, isProgram } from "../../files/paths.ts";
import { isCode, namedPaths } from "../../files/started-files.ts";
import type { Sandbox, SandboxPlan } from "../../sandbox.ts";
import type { McpStdioServer } from "../config.ts";

/** What a server must not see, and what it must not write. */
export type WallPlan = Pick<SandboxPlan, "absent" | "readOnly">;

/** The sandbox for the servers of a session, as one run has it. */
export interface ServerWall {
  readonly sandbox: Sandbox;
  /** Hidden and protected paths, as for commands. */
  readonly plan: () => WallPlan;
}

export interface ServerProcess {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

/** Files at the top of a project. */
const PROJECTS = ["package.json", "pyproject.toml", "go.mod", "Cargo.toml", "Gemfile", "composer.json"];

/**
 * What the process of a server in the sandbox sees and changes: it can write the workspace and the paths in its settings, but not its
 * own code. Throws Error for a program or folder that does not exist.
 */
export function serverPlan(
  process: ServerProcess,
  config: McpStdioServer,
  root: string,
  { absent, readOnly }: WallPlan,
): SandboxPlan {
  const { paths, code } = programPaths(process, root);
  return {
    root,
    reads: ["", ...code.map(projectOf)],
    writes: ["", ...paths],
    scratch: [],
    network: config.network ?? true,
    absent,
    readOnly: [...readOnly, ...code],
  };
}

/**
 * The paths in the arguments of a program, without those of code, and the code outside the workspace. Throws Error for a program or
 * folder that does not exist.
 */
export function programPaths(
  process: ServerProcess,
  root: string,
): { readonly paths: readonly string[]; readonly code: readonly string[] } {
  const { file, args, cwd } = process;
  const program = findProgram(process);
  // In the sandbox the error would not say which of the two is missing.
  if (program === undefined || !existsSync(cwd)) throw new Error(`${file} could not be started in ${cwd}: ENOENT`);
  const paths = [cwd, ...namedPaths(args).filter(existsSync)];
  const isCodeFile = (path: string): boolean => statSync(path).isFile() && isCode(path);
  const code = [program, ...paths.filter(isCodeFile)].filter((path) => !contains(root, path));
  return { paths: paths.filter((path) => !isCodeFile(path)), code };
}

/** Finds the program as a process start does: a bare name is looked up in PATH. */
function findProgram({ file, cwd, env }: ServerProcess): string | undefined {
  if (file.includes("/")) return isProgram(resolve(cwd, file)) ? resolve(cwd, file) : undefined;
  return (env.PATH ?? "")
    .split(":")
    .map((folder) => join(resolve(cwd, folder), file))
    .find(isProgram);
}

/** The folder that contains a code file's dependencies: the outermost `node_modules`, or the project. */
export function projectOf(file: string): string {
  const modules = file.indexOf("/node_modules/");
  if (modules !== -1) return file.slice(0, modules + "/node_modules".length);
  for (let folder = dirname(file); folder !== dirname(folder); folder = dirname(folder))
    if (PROJECTS.some((name) => existsSync(join(folder, name)))) return folder;
  return file;
}
