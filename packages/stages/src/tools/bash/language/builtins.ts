import { resolve } from "node:path";
import { isFolder, resolveReal } from "../../files/paths.ts";
import { words } from "../readers/reading.ts";
import { EXIT_CODE } from "./expand.ts";
import type { Shell } from "./external.ts";
import { outside } from "./line.ts";

/** Other builtins: most evaluate their words, run other commands, or change how the rest of the line is read. */
const OTHERS = words(
  ". [ alias bg bind break builtin caller compgen complete compopt continue coproc declare dirs disown enable eval exec export fc fg " +
    "getopts hash help history jobs let local logout mapfile popd pushd readarray readonly read return shift shopt source " +
    "suspend times trap typeset ulimit umask unalias unset wait kill",
);

const NUMBER = new RegExp(`^(?:${EXIT_CODE}|-?[0-9]{1,18})$`);
const ANY = /^/;

/** The harmless words of builtins that read no file, with a NUL before each word. */
const FORMS = new Map<string, RegExp>([
  ["true", ANY],
  ["false", ANY],
  [":", ANY],
  ["echo", ANY],
  ["pwd", /^(?:\0-[LP])?$/],
  ["exit", new RegExp(`^(?:\0(?:${EXIT_CODE}|-?[0-9]{1,18}))?$`)],
  // Without `%n` and `-v`, which set variables, `*`, which takes its width from a word, and wide fields, which fill the memory.
  ["printf", /^\0(?!-)(?:[^%\0]|%(?:%|[-+ #0]*(?:[1-9][0-9]{0,2})?(?:\.[0-9]{0,3})?[sdiuoxXfeEgGcbq]))*(?:\0|$)/],
  ["set", /^(?:\0[-+](?:[eux]+|[eux]*o\0(?:pipefail|errexit|nounset|xtrace)))+$/],
  // Both print where a program is.
  ["command", /^\0-[vV](?:\0[A-Za-z0-9_][A-Za-z0-9_.+-]*)+$/],
  ["type", /^(?:\0-[at])?(?:\0[A-Za-z0-9_][A-Za-z0-9_.+-]*)+$/],
]);

/** The paths that a builtin in a harmless form reads; undefined for other commands. Throws OutsideLanguage. */
export function builtin(argv: readonly string[], { setting, changed }: Shell): readonly string[] | undefined {
  const [name = "", ...args] = argv;
  if (name === "test") return testedPaths(args);
  if (name === "[" && args.at(-1) === "]") return testedPaths(args.slice(0, -1));
  if (name === "export" && args.length > 0) {
    for (const word of args) {
      const equals = word.indexOf("=");
      if (equals < 1) refuse(name);
      setting(word.slice(0, equals), word.slice(equals + 1));
      changed.add(word.slice(0, equals));
    }
    return [];
  }
  if (FORMS.get(name)?.test(args.map((word) => `\0${word}`).join("")) === true) return [];
  return FORMS.has(name) || OTHERS.has(name) ? refuse(name) : undefined;
}

function refuse(name: string): never {
  throw outside(`the builtin ${name} in an unusual form`);
}

const FILE_TESTS = /^-[abcdefghkprsuwxGLNOS]$/;
const COMPARES_FILES = /^-(?:nt|ot|ef)$/;
const COMPARES = /^(?:=|==|!=|<|>)$/;
const COMPARES_NUMBERS = /^-(?:eq|ne|lt|le|gt|ge)$/;

/** The files that `test` looks at. Only plain forms are allowed, since `-v` and `-R` evaluate subscripts. */
function testedPaths(given: readonly string[]): readonly string[] {
  const args = given[0] === "!" && given.length > 1 ? given.slice(1) : given;
  const [first = "", second = "", third = ""] = args;
  if (args.length <= 1) return [];
  if (args.length === 2) {
    if (FILE_TESTS.test(first)) return [second];
    return /^-[nz]$/.test(first) || (first === "-t" && /^[012]$/.test(second)) ? [] : refuse("test");
  }
  if (args.length !== 3) refuse("test");
  if (COMPARES.test(second)) return [];
  if (COMPARES_NUMBERS.test(second) && [first, third].every((word) => NUMBER.test(word))) return [];
  if (COMPARES_FILES.test(second)) return [first, third];
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
