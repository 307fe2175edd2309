import { basename, relative, resolve } from "node:path";
import { contains, realPath } from "../../files/paths.ts";
import { type CommandPlace, FOUND_MARK, type Reading, reads, unknown, words } from "./reading.ts";

const FLAGS = words(
  "-daystart -depth -d -ignore_readdir_race -noignore_readdir_race -mount -noleaf -nowarn -warn -xdev -empty -executable -false " +
    "-true -nouser -nogroup -readable -writable -prune -quit -not -a -o -and -or ! ( ) ,",
);
const PRINTS = words("-print -print0 -ls");
const VALUES = words(
  "-maxdepth -mindepth -regextype -amin -atime -cmin -ctime -fstype -gid -group -ilname -iname -inum -ipath -iregex -iwholename " +
    "-links -lname -mmin -mtime -name -path -perm -regex -size -type -uid -used -user -wholename -xtype -newerat -newerct -newermt",
);
const FILES = words(
  "-anewer -cnewer -newer -samefile -neweraa -newerac -neweram -newerca -newercc -newercm -newerma -newermc -newermm",
);
/** Options that must come before the expression. */
const GLOBAL = words("-depth -d -mount -noleaf -xdev -maxdepth -mindepth -ignore_readdir_race -nowarn -warn");
const REFUSED = new Map([
  ["-delete", "deletes files"],
  ["-execdir", "runs a command in folders that it finds: use -exec"],
  ["-ok", "asks before it runs a command"],
  ["-okdir", "asks before it runs a command"],
  ["-fprint", "writes a file"],
  ["-fprint0", "writes a file"],
  ["-fprintf", "writes a file"],
  ["-fls", "writes a file"],
  ["-follow", "follows links"],
  ["-files0-from", "reads folders to search from a file"],
]);
/** Commands of -exec that look at a link itself; links are excluded from all others. */
const LOOKS_AT_LINKS = words("basename dirname echo printf readlink realpath stat");

/** Known conversions with a short width, so that the output stays bounded. */
const FORMAT =
  /^(?:[^%\\]|\\[abfnrtv0\\]|%%|%[-+ 0#]?[0-9]{0,3}(?:\.[0-9]{1,2})?(?:[abcdDfFgGhHiklmMnpPsStuUyYZ]|[ACTB][@+A-Za-z]))*$/;

interface Search {
  readonly starts: readonly string[];
  /** Options that must come first. */
  readonly globals: readonly string[];
  /** The other words: a test or action with its value, or what -exec runs. */
  readonly expression: readonly (readonly string[] | Exec)[];
  readonly files: readonly string[];
}

interface Exec {
  readonly command: readonly string[];
  readonly end: ";" | "+";
}

/** Parses a search, or explains why it is not known to only read. */
function parse(args: readonly string[]): Search | string {
  const starts: string[] = [];
  let at = 0;
  while (args[at] === "-P") at++;
  for (let word = args[at]; word !== undefined && !/^(?:-|[!(),]$)/.test(word); word = args[++at]) starts.push(word);
  const globals: string[] = [];
  const expression: (readonly string[] | Exec)[] = [];
  const files: string[] = [];
  for (; at < args.length; at++) {
    const word = args[at] ?? "";
    const value = args[at + 1];
    if (word === "-exec") {
      const exec = parseExec(args, at + 1);
      if (typeof exec === "string") return exec;
      expression.push(exec);
      at += exec.command.length + 1;
      continue;
    }
    const isPair = value !== undefined && (VALUES.has(word) || FILES.has(word) || word === "-printf");
    if (/^-[HL]$/.test(word)) return `${word} follows links`;
    if (!isPair && !FLAGS.has(word) && !PRINTS.has(word))
      return `${word} ${REFUSED.get(word) ?? "is not on the list of options that only read"}`;
    if (isPair && word === "-printf" && !FORMAT.test(value)) return "-printf has a format that is not on the list";
    if (isPair && FILES.has(word)) files.push(value);
    const words = isPair ? [word, value] : [word];
    if (expression.length === 0 && GLOBAL.has(word)) globals.push(...words);
    else expression.push(words);
    at += words.length - 1;
  }
  return { starts: starts.length === 0 ? ["."] : starts, globals, expression, files };
}

function parseExec(args: readonly string[], from: number): Exec | string {
  let end = from;
  while (end < args.length && args[end] !== ";" && !(args[end] === "+" && args[end - 1] === "{}")) end++;
  const last = args[end];
  const command = args.slice(from, end);
  const count = command.filter((word) => word === "{}").length;
  if ((last !== ";" && last !== "+") || command.length === 0 || command[0] === "{}") return "-exec is not complete";
  if (command.some((word) => word !== "{}" && (word.includes("{}") || word === "+" || word.includes(FOUND_MARK))))
    return "-exec has {} within a word";
  return last === "+" && count !== 1 ? "-exec … {} + takes one {} at its end" : { command, end: last };
}

export function readFind(args: readonly string[], place: CommandPlace): Reading {
  const search = parse(args);
  if (typeof search === "string") return unknown(`find ${search}`);
  const paths = [...search.files];
  const trees = [...search.starts];
  const expression: string[] = [];
  const withoutStore = leavesOutStore(search.starts, place);
  for (const part of search.expression) {
    if (!("command" in part)) {
      expression.push(...part);
      continue;
    }
    const run = readExec(part, search.starts, place);
    if (run.kind === "unknown") return run;
    paths.push(...run.paths);
    trees.push(...run.trees);
    const links = LOOKS_AT_LINKS.has(basename(part.command[0] ?? "")) ? [] : ["!", "-type", "l"];
    // The parentheses make a preceding `!` apply to all of it.
    expression.push("(", ...links, ...withoutStore, "-exec", ...run.argv, part.end, ")");
  }
  return reads(["find", ...search.starts, ...search.globals, ...expression], paths, trees);
}

/** The command is judged for each start. */
const MOST_STARTS = 32;

/** The command with `{}`, if it only reads whatever is found below each start. */
function readExec({ command, end }: Exec, starts: readonly string[], place: CommandPlace): Reading {
  if (starts.length > MOST_STARTS) return unknown("find -exec with too many start folders");
  let judged: readonly string[] | undefined;
  const paths: string[] = [];
  const trees: string[] = [];
  const isNamed = (path: string): boolean => !path.includes(FOUND_MARK);
  for (const start of starts) {
    const folder = start.endsWith("/") ? start : `${start}/`;
    const found = [`${folder}${FOUND_MARK}found1`, `${folder}${FOUND_MARK}found2`];
    const given = command.flatMap((word) => (word !== "{}" ? [word] : end === "+" ? found : found.slice(0, 1)));
    const inner = place.inner(given);
    if (inner.kind === "unknown") return unknown(`find -exec ${basename(command[0] ?? "")}: ${inner.why}`);
    // The first path represents the whole batch, which must come last.
    if (end === "+" && inner.argv.at(-2) !== found[0]) return unknown("find -exec … {} + takes its paths at its end");
    const kept = end === "+" ? inner.argv.slice(0, -1) : inner.argv;
    const argv = kept.map((word) => (word === found[0] ? "{}" : word));
    if (argv.some((word) => word.includes(FOUND_MARK) || (word !== "{}" && word.includes("{}"))))
      return unknown("find -exec changes the path that it found");
    if (judged !== undefined && judged.join("\0") !== argv.join("\0"))
      return unknown("find -exec has different effects in its start folders");
    judged = argv;
    paths.push(...inner.paths.filter(isNamed));
    trees.push(...inner.trees.filter(isNamed));
  }
  return reads(judged ?? [], paths, trees);
}

/** Tests that exclude the run store, since another command opens what is found. */
function leavesOutStore(starts: readonly string[], { cwd, workspace: { store } }: CommandPlace): readonly string[] {
  if (store === undefined) return [];
  return starts.flatMap((start) => {
    const real = realPath(resolve(cwd, start));
    if (real === undefined || !contains(real, store)) return [];
    const rest = relative(real, store);
    // Below a folder that ends in a slash, some finds print another one.
    const printed = rest === "" ? [start] : [`${start}/${rest}`, ...(start.endsWith("/") ? [start + rest] : [])];
    return printed
      .map((path) => path.replace(/[[\]*?\\]/g, "\\$&"))
      .flatMap((path) => ["!", "-path", path, "!", "-path", `${path}/*`]);
  });
}

/** A command that prints only paths below folders, without links and the run store. It must still be judged by `readCommand`. */
export interface PathProducer {
  readonly argv: readonly string[];
  /** The searched folders; each printed path begins with one. */
  readonly starts: readonly string[];
  /** Whether paths end in NUL; otherwise in a newline, and no path contains one. */
  readonly nul: boolean;
}

/** Rewrites a find command to a `PathProducer`; undefined if it may print anything else. */
export function findProducer(args: readonly string[], place: CommandPlace): PathProducer | undefined {
  const search = parse(args);
  if (typeof search === "string") return undefined;
  const { starts, globals } = search;
  const expression = search.expression.flatMap((part) => ("command" in part ? [] : [part]));
  const actions = expression.filter(([word = ""]) => PRINTS.has(word) || word === "-printf" || word === "-quit");
  const last = expression.at(-1)?.join(" ") ?? "";
  const prints = actions.length === 1 && /^-print0?$/.test(last);
  if (expression.length < search.expression.length || (actions.length > 0 && !prints)) return undefined;
  const nul = last === "-print0";
  const tests = prints ? expression.slice(0, -1) : expression.length === 0 ? [] : [["("], ...expression, [")"]];
  const safe = ["!", "-type", "l", ...(nul ? [] : ["!", "-path", "*\n*"]), ...leavesOutStore(starts, place)];
  return { argv: ["find", ...starts, ...globals, ...tests.flat(), ...safe, nul ? "-print0" : "-print"], starts, nul };
}
