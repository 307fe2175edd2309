import { lstatSync } from "node:fs";
import { isAbsolute, resolve } from "node:path";
import { findProducer, type PathProducer } from "../readers/find.ts";
import { ownWords, parseOptions } from "../readers/options.ts";
import { READERS } from "../readers/reader-table.ts";
import { readCommand } from "../readers/readers.ts";
import { type CommandPlace, FOUND_MARK, words } from "../readers/reading.ts";

/** A call of xargs whose meaning is certain. */
export interface XargsLine {
  /** Its options. */
  readonly own: readonly string[];
  readonly command: readonly string[];
  /** The word that represents an item (`-I {}`). */
  readonly replaces: string | undefined;
  /** Whether items end in NUL. */
  readonly nul: boolean;
}

const XARGS_FLAG = /^(?:-0|--null|-r|-t|--no-run-if-empty|-[nP][0-9]{1,4}|-I(?:\{\}|%|@))$/;
const XARGS_PAIR = /^(?:-[nP] [0-9]{1,4}|-I (?:\{\}|%|@)|-d (?:\n|\\n))$/;

/** Undefined if it is not certain what xargs runs. */
export function readXargs([, ...args]: readonly string[]): XargsLine | undefined {
  const count = ownWords(args, XARGS_FLAG, XARGS_PAIR);
  if (typeof count === "string" || count >= args.length) return undefined;
  const own = args.slice(0, count);
  const replaces = [...own.join(" ").matchAll(/-I ?(\{\}|%|@)/g)].at(-1)?.[1];
  return { own, command: args.slice(count), replaces, nul: own.includes("-0") || own.includes("--null") };
}

/** The rewritten words of a command that feeds xargs, or of xargs itself with paths for its input. */
export interface Fed {
  readonly argv: readonly string[];
  readonly found?: readonly string[];
}

/** Names that no judged path can contain. */
const STANDS_FOR_FOUND = [`${FOUND_MARK}one`, `${FOUND_MARK}two`];

/**
 * Rewrites a pipeline that starts with a search and feeds xargs through commands that only remove lines: the input of xargs is
 * then known to be paths below the searched folders.
 */
export function feedsXargs(
  pipeline: readonly (readonly string[] | undefined)[],
  producerOf: (argv: readonly string[]) => PathProducer | undefined,
): readonly (Fed | undefined)[] {
  const at = pipeline.findIndex((argv) => argv?.[0] === "xargs");
  const [first] = pipeline;
  const line = pipeline[at];
  const nothing = pipeline.map(() => undefined);
  if (at < 1 || first === undefined || line === undefined) return nothing;
  const xargs = readXargs(line);
  const producer = producerOf(first);
  const between = pipeline.slice(1, at);
  if (xargs === undefined || producer === undefined || !between.every(leavesLinesOut)) return nothing;
  const delimited = xargs.own.includes("-d");
  if (producer.nul ? between.length > 0 || delimited : xargs.nul) return nothing;
  const found = producer.starts.flatMap((start) =>
    STANDS_FOR_FOUND.map((name) => `${start.replace(/\/$/, "")}/${name}`),
  );
  const splits = xargs.nul || delimited ? [] : producer.nul ? ["-0"] : ["-d", "\\n"];
  return pipeline.map((argv, index): Fed | undefined => {
    if (index === 0) return { argv: producer.argv };
    return index === at && argv !== undefined ? { argv: ["xargs", ...splits, ...argv.slice(1)], found } : undefined;
  });
}

/** Whether its output consists of unchanged lines of its input. */
function leavesLinesOut(argv: readonly string[] | undefined): boolean {
  const [name, ...args] = argv ?? [];
  switch (name) {
    case "head":
    case "tail":
      return args.length === 0 || /^-(?:n ?)?[0-9]+$/.test(args.join(" "));
    case "sort":
    case "uniq":
      return args.every((arg) => /^-[ru]+$/.test(arg));
    case "grep":
      return /^[^-]/.test(args.at(-1) ?? "") && args.slice(0, -1).every((arg) => /^-[vEFiwx]+$/.test(arg));
    default:
      return false;
  }
}

/**
 * Rewrites `find …`, `rg -l …`, `rg --files …` or `grep -rl …` so that its output is safe for `xargs -0` (if `nul` is set) or
 * `xargs -d '\n'`: every path begins with one of `starts`, is not a link, and contains no newline unless `nul`. The command must
 * still be judged by `readCommand`. Undefined if it may print anything else.
 */
export function pathProducer(argv: readonly string[], place: CommandPlace): PathProducer | undefined {
  if (argv[0] === "find") return findProducer(argv.slice(1), place);
  return argv[0] === "rg" || argv[0] === "grep" ? searchProducer(argv, place) : undefined;
}

/** Options that make a search print only paths. */
const PRINTS_PATHS = words("l files-with-matches files files-without-match L");
const PRINTS_MORE = words(
  "c count count-matches json stats type-list null-data z vimgrep passthru q quiet color colors p pretty path-separator replace",
);
const ENDS_IN_NUL = new Map([
  ["rg", words("0 null")],
  ["grep", words("Z null")],
]);
/** Excludes names that contain a newline. */
const ONE_LINE = new Map([
  ["rg", ["--iglob=!*\n*"]],
  ["grep", ["--exclude=*\n*", "--exclude-dir=*\n*"]],
]);

/** Neither follows links below a folder, so the searched folders must not be links. */
function searchProducer(argv: readonly string[], place: CommandPlace): PathProducer | undefined {
  const [name = "", ...args] = argv;
  const spec = READERS.get(name);
  const reading = readCommand(argv, place);
  const options = spec === undefined ? "" : parseOptions(args, spec);
  if (typeof options === "string" || spec === undefined || reading?.kind !== "reads") return undefined;
  const recursive = name === "rg" || options.seen.has("r") || options.seen.has("recursive");
  const seen = [...options.seen.keys()];
  const isL = (option: string): boolean => PRINTS_PATHS.has(option) && (name === "grep" || option !== "L");
  if (!recursive || !seen.some(isL) || seen.some((option) => PRINTS_MORE.has(option))) return undefined;
  const patternGiven = spec.patternBy?.some((option) => options.seen.has(option)) === true;
  const folders = patternGiven ? options.operands : options.operands.slice(1);
  const isFolder = (path: string): boolean =>
    !path.startsWith("-") &&
    !path.includes("\n") &&
    lstatSync(isAbsolute(path) ? path : resolve(place.cwd, path), { throwIfNoEntry: false })?.isDirectory() === true;
  if (!folders.every(isFolder)) return undefined;
  // All added options come before the operands.
  const head = reading.argv.slice(0, reading.argv.length - options.operands.length).filter((word) => word !== "--");
  const pattern = patternGiven ? [] : options.operands.slice(0, 1);
  const starts = folders.length === 0 ? ["."] : folders;
  const nul = seen.some((option) => ENDS_IN_NUL.get(name)?.has(option) === true);
  return { argv: [...head, ...(nul ? [] : (ONE_LINE.get(name) ?? [])), "--", ...pattern, ...starts], starts, nul };
}
