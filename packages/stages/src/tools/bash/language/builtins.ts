import { resolve } from "node:path";
import { isFolder, resolveReal } from "../../files/paths.ts";
import { type NamedPath, words } from "../readers/reading.ts";
import { EXIT_CODE } from "./expand.ts";
import { outside } from "./line.ts";

/** What a builtin may change in its shell. */
export interface BuiltinScene {
  /** Throws for a variable that no line may set. */
  readonly setting: (name: string, value: string) => void;
  readonly changed: (name: string) => void;
}

/** Builtins that evaluate their words, run other commands, or change how the rest of the line is read. */
const NEVER = words(
  ". alias bg bind break builtin caller compgen complete compopt continue coproc declare dirs disown enable eval exec fc fg " +
    "getopts hash help history jobs let local logout mapfile popd pushd readarray readonly read return shift shopt source " +
    "suspend times trap typeset ulimit umask unalias unset wait kill",
);

/** The paths that a builtin in a harmless form reads; undefined for other commands. Throws OutsideLanguage. */
export function builtin(argv: readonly string[], scene: BuiltinScene): readonly NamedPath[] | undefined {
  const [name = "", ...args] = argv;
  switch (name) {
    case "true":
    case "false":
    case ":":
    case "echo":
      return [];
    case "pwd":
      return args.length === 0 || (args.length === 1 && /^-[LP]$/.test(args[0] ?? "")) ? [] : refuse(name);
    case "exit":
      return args.length === 0 || (args.length === 1 && isNumber(args[0] ?? "")) ? [] : refuse(name);
    case "printf":
      return isPlainFormat(args[0]) ? [] : refuse(name);
    case "set":
      return isPlainSet(args) ? [] : refuse(name);
    case "test":
      return testedPaths(args);
    case "[":
      return args.at(-1) === "]" ? testedPaths(args.slice(0, -1)) : refuse(name);
    case "command":
    case "type":
      return isQuestion(name, args) ? [] : refuse(name);
    case "export":
      for (const word of args) exported(word, scene);
      return args.length === 0 ? refuse(name) : [];
    default:
      return NEVER.has(name) ? refuse(name) : undefined;
  }
}

function refuse(name: string): never {
  throw outside(`the builtin ${name} in an unusual form`);
}

function exported(word: string, { setting, changed }: BuiltinScene): void {
  const equals = word.indexOf("=");
  if (equals < 1) refuse("export");
  const name = word.slice(0, equals);
  setting(name, word.slice(equals + 1));
  changed(name);
}

/** Refuses `%n` and `-v`, which set variables, `*`, which takes its width from a word, and wide fields, which fill the memory. */
function isPlainFormat(format: string | undefined): boolean {
  if (format === undefined || format.startsWith("-")) return false;
  return !/%/.test(format.replace(/%(?:%|[-+ #0]*[0-9]{0,3}(?:\.[0-9]{0,3})?[sdiuoxXfeEgGcbq])/g, ""));
}

function isPlainSet(args: readonly string[]): boolean {
  if (args.length === 0) return false;
  let at = 0;
  while (at < args.length) {
    const word = args[at] ?? "";
    if (!/^[-+](?:[eux]+o?|o)$/.test(word)) return false;
    at += 1;
    if (word.endsWith("o") && !/^(?:pipefail|errexit|nounset|xtrace)$/.test(args[at++] ?? "")) return false;
  }
  return true;
}

/** `command -v node` and `type node` print where a program is. */
function isQuestion(name: string, args: readonly string[]): boolean {
  const [flag = "", ...names] = args;
  const asks = name === "type" ? /^-[at]$/.test(flag) || !flag.startsWith("-") : /^-[vV]$/.test(flag);
  const rest = name === "type" && !flag.startsWith("-") ? args : names;
  return asks && rest.length > 0 && rest.every((word) => /^[A-Za-z0-9_][A-Za-z0-9_.+-]*$/.test(word));
}

function isNumber(word: string): boolean {
  return word === EXIT_CODE || /^-?[0-9]{1,18}$/.test(word);
}

const FILE_TESTS = /^-[abcdefghkprsuwxGLNOS]$/;
const COMPARES_FILES = /^-(?:nt|ot|ef)$/;
const COMPARES = /^(?:=|==|!=|<|>)$/;
const COMPARES_NUMBERS = /^-(?:eq|ne|lt|le|gt|ge)$/;

/** The files that `test` looks at. Only plain forms are allowed, since `-v` and `-R` evaluate subscripts. */
function testedPaths(given: readonly string[]): readonly NamedPath[] {
  const args = given[0] === "!" && given.length > 1 ? given.slice(1) : given;
  const [first = "", second = "", third = ""] = args;
  if (args.length <= 1) return [];
  if (args.length === 2) {
    if (FILE_TESTS.test(first)) return [{ path: second, access: "read" }];
    return /^-[nz]$/.test(first) || (first === "-t" && /^[012]$/.test(second)) ? [] : refuse("test");
  }
  if (args.length !== 3) refuse("test");
  if (COMPARES.test(second)) return [];
  if (COMPARES_NUMBERS.test(second) && [first, third].every(isNumber)) return [];
  if (COMPARES_FILES.test(second)) return [first, third].map((path) => ({ path, access: "read" }));
  return refuse("test");
}

/** The folder that `cd` enters: absolute, links resolved. Throws OutsideLanguage if it is not certain. */
export function cdTarget(argv: readonly string[], cwd: string): string {
  const [target, ...more] = argv[1] === "--" ? argv.slice(2) : argv.slice(1);
  if (target === undefined || target === "" || target.startsWith("-") || more.length > 0)
    throw outside("a cd of an unusual form");
  // Bash resolves `..` as text, so after a link it leads elsewhere.
  const names = target.split("/").filter((name) => name !== "" && name !== ".");
  if (names.some((name, at) => name === ".." && names.slice(0, at).some((before) => before !== "..")))
    throw outside("a cd with .. after a name");
  const resolution = resolveReal(target, cwd);
  if (!resolution.ok || !resolution.exists || !isFolder(resolution.real))
    throw outside(`a cd to ${target}, which is not a folder`);
  // Bash keeps the name of a link and resolves a later `..` by it.
  if (resolve(cwd, target) !== resolution.real) throw outside(`a cd through a link, to ${target}`);
  return resolution.real;
}
