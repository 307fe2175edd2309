import { execFile } from "node:child_process";
import { existsSync, realpathSync } from "node:fs";
import { join, parse } from "node:path";
import { promisify } from "node:util";
import { probeSandbox } from "@sluice/stages/runtime";
import { carriedRipgrep } from "@sluice/stages/tools";
import type { Environment } from "@sluice/tui/user";
import { foldersAbove, type ProjectPaths } from "../../../project/project-paths.ts";
import { blocking, type Check, ok, warning } from "./check.ts";

const NEEDED_NODE = "22.18.0";
const TIMEOUT_MS = 5_000;

/** Node, the system, and the programs that tools call. */
export async function checkMachine(workspace: string, env: Environment): Promise<readonly Check[]> {
  return [checkNode(), checkPlatform(), await checkRipgrep(env), await checkGit(env), checkRepository(workspace)];
}

function checkNode(): Check {
  const { node } = process.versions;
  if (node.localeCompare(NEEDED_NODE, "en", { numeric: true }) >= 0) return ok("node", `Node ${node}`);
  return blocking("node", `Node ${node} is too old`, `install Node ${NEEDED_NODE} or newer from https://nodejs.org`);
}

function checkPlatform(): Check {
  const system = `${process.platform} ${process.arch}`;
  if (process.platform === "linux") return ok("platform", system);
  return warning(
    "platform",
    `${system}: Sluice is tested on Linux; elsewhere it may not end all processes that outlive a run, or detect all network file systems`,
  );
}

async function checkRipgrep(env: Environment): Promise<Check> {
  const program = await carriedRipgrep();
  const version = program === undefined ? undefined : await firstLine(program, ["--version"], env);
  if (version !== undefined) return ok("ripgrep", version);
  return warning(
    "ripgrep",
    "the bundled ripgrep is missing or does not run; Grep uses its own, slower search",
    "reinstall Sluice with optional dependencies",
  );
}

async function checkGit(env: Environment): Promise<Check> {
  const version = await firstLine("git", ["--version"], env);
  if (version !== undefined) return ok("git", version);
  return warning("git", "git is not installed; stages that call it fail", "install git");
}

/** Searched by name: git itself would read the settings of an untrusted folder. */
function checkRepository(workspace: string): Check {
  const repository = foldersAbove(workspace).find((folder) => existsSync(join(folder, ".git")));
  if (repository !== undefined)
    return ok("repository", repository === workspace ? workspace : `${workspace} is inside ${repository}`);
  return warning(
    "repository",
    `${workspace} is not a git repository: changes of runs cannot be compared or rolled back`,
    "git init",
  );
}

/** Builds the sandbox for commands, and runs a canary that tries to escape it. */
export async function checkSandbox(workspace: string, { store }: Pick<ProjectPaths, "store">): Promise<Check> {
  const { wall, missing } = await probeSandbox(realpathSync(workspace), [store]);
  if (wall !== undefined)
    return ok("sandbox", `${wall} works: a test program in it could not change or reach anything`);
  const why = missing?.reason ?? "no sandbox was found";
  return warning(
    "sandbox",
    `${why}; commands run without one, and commands that are not plain need approval`,
    missing?.fix,
  );
}

/** The first line of a program's output; undefined if it fails. Runs in the root, so that `.` in PATH does not mean the workspace. */
async function firstLine(program: string, args: readonly string[], env: Environment): Promise<string | undefined> {
  try {
    const options = { cwd: parse(process.execPath).root, env: { PATH: env.PATH ?? "" }, timeout: TIMEOUT_MS };
    const { stdout } = await promisify(execFile)(program, [...args], options);
    return stdout.split("\n", 1)[0]?.trim();
  } catch (thrown) {
    if (thrown instanceof Error) return undefined;
    throw thrown;
  }
}
