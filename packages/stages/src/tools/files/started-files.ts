// The files that a program starts from. A run that wrote one would decide what starts next, with the keys of that program.

import { basename, delimiter, dirname, extname, isAbsolute, resolve, sep } from "node:path";
import { field, parseJson } from "@sluice/core";
import { readSmallFile } from "../search/gitignore.ts";
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
 * The files that a command names: its program, and arguments such as `server.mjs`, `-r./hook.js` and `--config=a.json`. Of Node.js and
 * Python also what they execute for `dist/server`, `.` and `-m server`. With files of code that do not exist yet, such as the output
 * of a build. Each as it is named, and where that leads.
 */
export function startedFiles({ command, cwd = ".", path }: StartedCommand, root: string): readonly string[] {
  const start = command.findIndex((word) => !/^env$|\/env$|^\w+=/.test(word));
  const [program = "", ...args] = command.slice(start);
  const from = resolve(root, cwd);
  const own = program.includes("/") ? [resolve(root, program)] : foundByPath(program, from, path, root);
  const named = args.flatMap((arg) => {
    if (arg.length > LONGEST_WORD) return [];
    const words = [arg, arg.slice(arg.indexOf("=") + 1), arg.replace(/^-[a-zA-Z]/, "")].map(withoutScheme);
    return words
      .filter((word) => MISSING_CODE.test(word) || isFile(resolve(from, word)))
      .map((word) => resolve(from, word));
  });
  const scripts = INTERPRETERS.test(basename(program)) ? scriptFiles(args, from) : [];
  return [...new Set([...own, ...named, ...scripts].flatMap(withTarget))];
}

/** Those of `startedFiles` that are executed, and not data such as a database, which a server may write itself. */
export function startedCode(started: StartedCommand, root: string): readonly string[] {
  const program = startedFiles({ ...started, command: started.command.slice(0, 1) }, root);
  return [...program, ...startedFiles(started, root).filter(isCode)];
}

/** The absolute paths among the arguments of a program, also as values of options. */
export function namedPaths(args: readonly string[]): readonly string[] {
  return args.flatMap((arg) => [arg, arg.slice(arg.indexOf("=") + 1)]).filter((path) => isAbsolute(path));
}

/** In characters. Longer words are texts. */
const LONGEST_WORD = 250;
const MISSING_CODE = /^[^\s:]*(?:(?:^|\/)\.env(?:\.\w+)*|\.(?:[cm]?[jt]sx?|py|rb|sh|pl|php|lua|jar|exe|wasm))$/i;
const INTERPRETERS =
  /^(?:node|nodejs|bun|deno|tsx|ts-node|python[\d.]*|pypy[\d.]*|ruby|perl|php|lua|(?:ba|da|z|k|fi)?sh)$/;
/** What Node.js and Python try behind the name of a script or a module. */
const COMPLETED = [
  ...["", ".js", ".json", ".node", ".cjs", ".mjs", ".ts", ".cts", ".mts", ".tsx", ".jsx", ".py"],
  ...[
    "/package.json",
    "/index.js",
    "/index.json",
    "/index.cjs",
    "/index.mjs",
    "/index.ts",
    "/index.tsx",
    "/__main__.py",
    "/__init__.py",
  ],
];

/** Options whose value is executed in front of the script. */
const LOADERS = /^(?:-r|--require|--import|--loader|--experimental-loader)$/;

/** What an interpreter may execute for its words, up to the script or module: the next ones are arguments of that. */
function scriptFiles(args: readonly string[], from: string): readonly string[] {
  let isFound = false;
  return args.flatMap((arg, at) => {
    const module = /^-[a-zA-Z]*m(.*)$/.exec(arg)?.[1];
    if (
      isFound ||
      /^(?:exec|run|task|watch|x)$/.test(arg) ||
      (module === undefined && arg.startsWith("-")) ||
      !/^[\w./@+:-]{1,250}$/.test(arg)
    )
      return [];
    const name = module === undefined ? withoutScheme(arg) : (module || (args[at + 1] ?? "")).replaceAll(".", "/");
    const base = resolve(from, name);
    const bases = [base, ...mainOf(base).map((main) => resolve(base, main))];
    const files = bases.flatMap((one) => COMPLETED.map((ending) => `${one}${ending}`));
    isFound = module !== undefined || (files.some(isFile) && !LOADERS.test(args[at - 1] ?? ""));
    return files;
  });
}

/** What the package.json of a folder names as its script. */
function mainOf(folder: string): readonly string[] {
  const manifest = parseJson(readSmallFile(resolve(folder, "package.json")) ?? "");
  const main = manifest.ok ? field(manifest.value, "main") : undefined;
  return typeof main === "string" ? [main] : [];
}

/** What a program's name stands for in the workspace, or will stand for once it exists: the folders of PATH are searched in order. */
function foundByPath(program: string, cwd: string, path: string | undefined, root: string): readonly string[] {
  // An empty entry is the current folder.
  const files = (path?.split(delimiter) ?? []).map((folder) => resolve(cwd, folder, program));
  const found = files.findIndex(isProgram);
  return files.slice(0, found === -1 ? undefined : found + 1).filter((file) => {
    const folder = resolveReal(dirname(file), root);
    // A folder of the workspace may be a link to one elsewhere.
    return contains(root, file) || (folder.ok && contains(root, folder.real));
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
