import { isPlainSet } from "./builtins.ts";
import type { Opens } from "./findings.ts";
import { parseOptions } from "./options.ts";
import { awkOperands, isPlainAwk, readSedLine } from "./scripts.ts";
import { listed, literalWord, mayBeOption, type ShellWord } from "./word.ts";

/** What the list of commands that only read says about one command. */
export interface Reading {
  readonly readOnly: boolean;
  /** What it reads, and whatever may be a path. */
  readonly paths: readonly ShellWord[];
  readonly opens?: Opens;
}

const YES: Reading = { readOnly: true, paths: [] };
const NO: Reading = { readOnly: false, paths: [] };

/** Commands whose words need more than a list of options. */
export function readSpecial(name: string, words: readonly ShellWord[]): Reading | undefined {
  const args = words.slice(1);
  switch (name) {
    case "true":
    case "false":
      return YES;
    case ":":
    case "echo":
      return { readOnly: true, paths: listed(args) };
    case "exit":
    case "return":
    case "break":
    case "continue":
      return args.length <= 1 && args.every((word) => !word.dynamic && /^[0-9]+$/.test(word.text)) ? YES : NO;
    case "test":
    case "[":
      return readTest(name === "[" ? args.slice(0, -1) : args, name === "test" || args.at(-1)?.text === "]");
    case "printf": {
      const format = args[0];
      const fixed = format !== undefined && !mayBeOption(format) && !/^-(?!-$)/.test(format.text);
      return { readOnly: fixed, paths: listed(args) };
    }
    case "set":
      return { readOnly: isPlainSet(words), paths: listed(args) };
    case "date":
      return readDate(args);
    case "find":
      return readFind(args);
    case "jq":
      return readJq(args);
    case "sed":
      return readSed(words);
    case "awk":
      return readAwk(words);
    case "node":
    case "npm":
    case "python":
    case "python3":
      return args.length === 1 && args[0]?.dynamic === false && VERSION.has(args[0].text) ? YES : NO;
    default:
      return undefined;
  }
}

const VERSION = new Set(["--version"]);

const FILE_TESTS = /^-[abcdefghkprstuwxGLNOS]$/;
const TEXT_TESTS = /^-[nz]$/;
const COMPARES_FILES = /^-(?:nt|ot|ef)$/;
const COMPARES = /^(?:=|==|!=|<|>|-(?:eq|ne|lt|le|gt|ge))$/;

/** `-v` and `-R` evaluate subscripts, so only the plain shapes count, and every dynamic word must be one word. */
function readTest(given: readonly ShellWord[], closed: boolean): Reading {
  let args = given;
  while (args[0] !== undefined && !args[0].dynamic && args[0].text === "!" && args.length > 1) args = args.slice(1);
  const [first, second, third] = args;
  const fits = closed && args.every((word) => !word.dynamic || word.single);
  if (first === undefined || args.length === 1) return fits ? YES : NO;
  if (args.length === 2 && second !== undefined && !first.dynamic) {
    if (FILE_TESTS.test(first.text)) return { readOnly: fits, paths: first.text === "-t" ? [] : [second] };
    return fits && TEXT_TESTS.test(first.text) ? YES : NO;
  }
  if (args.length === 3 && second !== undefined && third !== undefined && !second.dynamic) {
    if (COMPARES_FILES.test(second.text)) return { readOnly: fits, paths: [first, third] };
    return fits && COMPARES.test(second.text) ? YES : NO;
  }
  return { readOnly: false, paths: args.filter((_, at) => FILE_TESTS.test(args[at - 1]?.text ?? "")) };
}

function readDate(args: readonly ShellWord[]): Reading {
  const options = parseOptions(args, {
    short: "uRI?d:r@f@",
    long: "date: reference@ file@ utc universal rfc-email iso-8601? rfc-3339: debug resolution",
  });
  // Any other operand sets the clock.
  const formats =
    options.operands.length <= 1 && options.operands.every((word) => word.head.startsWith("+") && word.single);
  return { readOnly: options.known && !options.unsure && formats, paths: options.files };
}

const FIND_FLAGS = new Set(
  "-daystart -depth -d -help -ignore_readdir_race -mount -noleaf -xdev -empty -executable -false -true -nouser -nogroup -readable -writable -print -print0 -prune -quit -ls -not -a -o -and -or ! ( ) ,".split(
    " ",
  ),
);
const FIND_VALUES = new Set(
  "-maxdepth -mindepth -regextype -amin -atime -cmin -ctime -fstype -gid -group -ilname -iname -inum -ipath -iregex -iwholename -links -lname -mmin -mtime -name -path -perm -regex -size -type -uid -used -user -wholename -xtype -printf".split(
    " ",
  ),
);
const FIND_RUNS = /^-(?:exec|ok)(?:dir)?$/;
const FIND_FILES = /^-(?:anewer|cnewer|newer|samefile|newer[aBcm][aBcmt])$/;

function readFind(args: readonly ShellWord[]): Reading {
  const paths: ShellWord[] = [];
  const starts: ShellWord[] = [];
  let at = 0;
  while (args[at]?.dynamic === false && /^-[HP]$/.test(args[at]?.text ?? "")) at++;
  for (let word = args[at]; word !== undefined && !/^(?:-.+|[!(),])$/.test(word.head); word = args[at]) {
    if (mayBeOption(word)) break;
    starts.push(word);
    at++;
  }
  let known = true;
  for (; at < args.length; at++) {
    const word = args[at];
    if (word === undefined) break;
    const value = args[at + 1];
    if (word.dynamic) {
      known = false;
      paths.push(word);
    } else if (FIND_FILES.test(word.text) && value !== undefined) {
      // `-newermt` compares with a date, not with a file.
      if (!word.text.endsWith("t")) paths.push(value);
      at++;
    } else if (FIND_VALUES.has(word.text) && value !== undefined) {
      known &&= value.single;
      at++;
    } else if (FIND_RUNS.test(word.text)) {
      // What it runs is reported on its own.
      known = false;
      while (at + 1 < args.length && !/^[;+]$/.test(args[at]?.text ?? "")) at++;
    } else if (!FIND_FLAGS.has(word.text)) {
      known = false;
      if (!word.text.startsWith("-")) paths.push(word);
    }
  }
  return { readOnly: known, paths: [...(starts.length === 0 ? [literalWord(".")] : starts), ...paths] };
}

const JQ_FLAGS =
  /^(?:-[rcesSnMCajR]+|--(?:raw-output|compact-output|exit-status|slurp|sort-keys|null-input|monochrome-output|color-output|ascii-output|join-output|raw-input|tab|stream|seq|unbuffered))$/;
const JQ_TEXTS: Readonly<Record<string, number>> = { "--arg": 2, "--argjson": 2, "--indent": 1 };
const JQ_FILES = new Set(["--slurpfile", "--rawfile"]);

/** The filter must be in the line, import nothing and not print the environment: `$ENV`, which may stand apart, too. */
function readJq(args: readonly ShellWord[]): Reading {
  const paths: ShellWord[] = [];
  let known = true;
  let filter: ShellWord | undefined;
  for (let at = 0; at < args.length; at++) {
    const word = args[at];
    if (word === undefined) break;
    if (mayBeOption(word)) {
      known = false;
      paths.push(word);
    } else if (JQ_TEXTS[word.text] !== undefined) {
      const values = args.slice(at + 1, at + 1 + (JQ_TEXTS[word.text] ?? 0));
      known &&= values.every((value) => value.single);
      at += values.length;
    } else if (JQ_FILES.has(word.text)) {
      const value = args[at + 2];
      if (value !== undefined) paths.push(value);
      at += 2;
    } else if (word.text.startsWith("-") && word.text !== "-") {
      known &&= JQ_FLAGS.test(word.text);
    } else if (filter === undefined) {
      filter = word;
    } else paths.push(word);
  }
  const plain =
    filter !== undefined &&
    !filter.dynamic &&
    !/\b(?:import|include|env|ENV|input_filename)\b|\$ENV|__prog/.test(filter.text);
  if (known && filter !== undefined) return { readOnly: plain, paths };
  return { readOnly: false, paths: filter === undefined ? paths : [filter, ...paths] };
}

function readSed(words: readonly ShellWord[]): Reading {
  const line = readSedLine(words);
  return { readOnly: line.plain && !line.inPlace, paths: line.files };
}

function readAwk(words: readonly ShellWord[]): Reading {
  const operands = awkOperands(words);
  if (operands !== undefined) {
    return { readOnly: isPlainAwk(words), paths: operands.slice(1).filter((word) => word.text !== "-") };
  }
  const values = words.slice(1).filter((word) => !word.text.startsWith("-") && !word.text.includes("{"));
  return { readOnly: false, paths: values };
}
