// The files that a program starts from. A run that wrote one would decide what starts next, with the keys of that program.

import { basename, delimiter, dirname, extname, resolve, sep } from "node:path";
import { contains, isFile, isProgram, resolveReal } from "./paths.ts";

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
 * The files that a command names: its program, and arguments such as `server.mjs`, `-r./hook.js` and `--config=a.json`, as Node.js and
 * Python complete them: `dist/server`, `.`, `-m server`. Also files that do not exist yet, such as the output of a build, if they are
 * written as code, settings or a script. Each as it is named, and where that leads.
 */
export function startedFiles({ command, cwd = ".", path }: StartedCommand, root: string): readonly string[] {
  const [program = "", ...args] = command;
  const from = resolve(root, cwd);
  const own = program.includes("/") ? [resolve(root, program)] : foundByPath(program, from, path, root);
  const completes = INTERPRETERS.test(basename(program));
  const named = args.flatMap((arg, at) => {
    if (arg.length > LONGEST_WORD) return [];
    const words = [arg, arg.slice(arg.indexOf("=") + 1), arg.replace(/^-[a-zA-Z]/, "")].map(withoutScheme);
    const isNamed = (word: string): boolean =>
      FILE_NAME.test(word) || (at === 0 && SCRIPT_PATH.test(word)) || isFile(resolve(from, word));
    const found = words.filter(isNamed).map((word) => resolve(from, word));
    if (found.length > 0 || !completes) return found;
    const base = resolve(from, args[at - 1] === "-m" ? arg.replaceAll(".", "/") : arg);
    return arg.startsWith("-") ? [] : COMPLETED.map((ending) => `${base}${ending}`).filter(isFile);
  });
  return [...new Set([...own, ...named].flatMap(withTarget))];
}

/** Those of `startedFiles` that are executed, and not data such as a database, which a server may write itself. */
export function startedCode(started: StartedCommand, root: string): readonly string[] {
  const program = startedFiles({ ...started, command: started.command.slice(0, 1) }, root);
  return [...program, ...startedFiles(started, root).filter(isCode)];
}

/** In characters. Longer words are texts. */
const LONGEST_WORD = 250;
/** Programs that complete the name of what they execute, and the endings that they try. */
const INTERPRETERS = /^(?:node|nodejs|bun|deno|tsx|ts-node|python[\d.]*|pypy[\d.]*)$/;
const COMPLETED = [
  ...[".js", ".cjs", ".mjs", ".ts", ".cts", ".mts", ".json", ".py"],
  ...["/index.js", "/index.cjs", "/index.ts", "/package.json", "/__main__.py", "/__init__.py"],
];
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

function withoutScheme(word: string): string {
  return word.startsWith("file://") ? word.slice("file://".length) : word;
}

/** A file and where it leads; none for a folder. */
function withTarget(path: string): readonly string[] {
  const resolution = resolveReal(path, sep);
  if (!resolution.ok) return [path];
  return resolution.exists && !isFile(resolution.real) ? [] : [path, resolution.real];
}

const CODE = new Set([".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".py", ".rb", ".php", ".sh", ".jar", ".wasm"]);

/** Whether a file is executed or loaded, by its name. */
export function isCode(path: string): boolean {
  return CODE.has(extname(path));
}
