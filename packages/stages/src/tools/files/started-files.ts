// The files that a program starts from. A run that wrote one would decide what starts next, with the keys of that program.

import { statSync } from "node:fs";
import { delimiter, dirname, extname, resolve, sep } from "node:path";
import { contains, isProgram, resolveReal } from "./paths.ts";

/** How a program is started. */
export interface StartedCommand {
  /** The program and its arguments. */
  readonly command: readonly string[];
  /** Where it starts, in the workspace; default: its root. */
  readonly cwd?: string | undefined;
  /** The variable PATH, by which a program without a slash is found. */
  readonly path: string | undefined;
}

/**
 * The files that a command names: its program, and arguments such as `server.mjs` and `--config=a.json`. Also files that do not exist
 * yet, such as the output of a build, if they are written as code, settings or a script. Each as it is named, and where that leads.
 */
export function startedFiles({ command, cwd = ".", path }: StartedCommand, root: string): readonly string[] {
  const [program = "", ...args] = command;
  const own = program.includes("/") ? [resolve(root, program)] : foundByPath(program, resolve(root, cwd), path, root);
  const named = args.flatMap((arg, at) => {
    const words = [arg, arg.slice(arg.indexOf("=") + 1)].filter((word) => word.length <= LONGEST_PATH);
    const isNamed = (word: string): boolean =>
      FILE_NAME.test(word) || (at === 0 && SCRIPT_PATH.test(word)) || isFile(resolve(root, cwd, word));
    return words.filter(isNamed).map((word) => resolve(root, cwd, word));
  });
  return [...new Set([...own, ...named].flatMap(withTarget))];
}

/** Those of `startedFiles` that are executed, and not data such as a database, which a server may write itself. */
export function startedCode(started: StartedCommand, root: string): readonly string[] {
  const program = startedFiles({ ...started, command: started.command.slice(0, 1) }, root);
  return [...program, ...startedFiles(started, root).filter(isCode)];
}

/** In characters. Longer words are texts. */
const LONGEST_PATH = 250;
/** An argument that names code or settings, whether it exists or not. */
const FILE_NAME = /^(?!-)[^\s:]*\.(?:[cm]?[jt]sx?|py|rb|sh|pl|php|lua|jar|exe|wasm|json[c5]?|ya?ml|toml)$/i;
/** A path that may be the script of an interpreter. */
const SCRIPT_PATH = /^(?!-)[^\s:]*\/[^\s:/]+$/;

/** What a program's name stands for in the workspace, or will stand for once it exists: the folders of PATH are searched in order. */
function foundByPath(program: string, cwd: string, path: string | undefined, root: string): readonly string[] {
  // An empty entry is the current folder.
  const files = (path?.split(delimiter) ?? []).map((folder) => resolve(cwd, folder, program));
  const found = files.findIndex(isProgram);
  return files.slice(0, found === -1 ? undefined : found + 1).filter((file) => {
    const folder = resolveReal(dirname(file), root);
    return folder.ok && contains(root, folder.real);
  });
}

/** A file and where it leads; none for a folder. */
function withTarget(path: string): readonly string[] {
  const resolution = resolveReal(path, sep);
  if (!resolution.ok) return [path];
  return resolution.exists && !isFile(resolution.real) ? [] : [path, resolution.real];
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

const CODE = new Set([".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".py", ".rb", ".php", ".sh", ".jar", ".wasm"]);

/** Whether a file is executed or loaded, by its name. */
export function isCode(path: string): boolean {
  return CODE.has(extname(path));
}
