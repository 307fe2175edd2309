import { lstatSync } from "node:fs";
import { resolve } from "node:path";
import { withFallback } from "../../files/results.ts";
import { findProducer, type PathProducer } from "../readers/find.ts";
import { gitProducer } from "../readers/git-producer.ts";
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
  /** The words before, with which rules are compared. */
  readonly given?: readonly string[];
  readonly found?: readonly string[];
  /** The folders below which xargs may open everything. */
  readonly trees?: readonly string[];
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
    if (index === 0) return { argv: producer.argv, given: first, trees: producer.starts };
    return index === at && argv !== undefined ? { argv: ["xargs", ...splits, ...argv.slice(1)], found } : undefined;
  });
}

const FIRST_OR_LAST = /^(?:\0-(?:n\0?)?[0-9]+)?$/;
const SORTS = /^(?:\0-[ru]+)*$/;

/** Words with which the output of a command consists of unchanged lines of its input, with a NUL before each word. */
const FILTERS = new Map([
  ["head", FIRST_OR_LAST],
  ["tail", FIRST_OR_LAST],
  ["sort", SORTS],
  ["uniq", SORTS],
  ["grep", /^(?:\0-[vEFiwx]+)*\0[^-\0][^\0]*$/],
]);

function leavesLinesOut([name = "", ...args]: readonly string[] = []): boolean {
  return FILTERS.get(name)?.test(args.map((word) => `\0${word}`).join("")) === true;
}

/** Searches that can print only paths, with words that exclude names with a newline. Neither follows links below a folder. */
const SEARCHES = new Map([
  ["rg", ["--iglob=!*\n*"]],
  ["grep", ["--exclude=*\n*", "--exclude-dir=*\n*"]],
]);
/** Options with which they do. To rg, `L` means to follow links, which its reader refuses. */
const PRINTS_PATHS = words("l files-with-matches files files-without-match L");
const PRINTS_MORE = words(
  "c count count-matches json stats type-list null-data z vimgrep passthru q quiet color colors p pretty path-separator replace",
);

/**
 * Rewrites `find …`, `rg -l …`, `rg --files …`, `grep -rl …` or a command of git that prints names so that its output is safe for `xargs -0` (if `nul` is set) or
 * `xargs -d '\n'`: every path begins with one of `starts`, is not a link, and contains no newline unless `nul`. The command must
 * still be judged by `readCommand`. Undefined if it may print anything else.
 */
export function pathProducer(argv: readonly string[], place: CommandPlace): PathProducer | undefined {
  const [name = "", ...args] = argv;
  if (name === "find") return findProducer(args, place);
  if (name === "git") return gitProducer(args, place);
  const oneLine = SEARCHES.get(name);
  const spec = READERS.get(name);
  if (oneLine === undefined || spec === undefined) return undefined;
  const options = parseOptions(args, spec);
  const reading = readCommand(argv, place);
  if (typeof options === "string" || reading?.kind !== "reads") return undefined;
  const seen = [...options.seen.keys()];
  const isRecursive = name === "rg" || seen.includes("r") || seen.includes("recursive");
  if (!isRecursive || !seen.some((one) => PRINTS_PATHS.has(one)) || seen.some((one) => PRINTS_MORE.has(one)))
    return undefined;
  const patternGiven = spec.patternBy?.some((option) => options.seen.has(option)) === true;
  const pattern = patternGiven ? [] : options.operands.slice(0, 1);
  const folders = options.operands.slice(pattern.length);
  const isFolder = (path: string): boolean =>
    !path.startsWith("-") &&
    !path.includes("\n") &&
    withFallback(() => lstatSync(resolve(place.cwd, path)).isDirectory(), false);
  if (!folders.every(isFolder)) return undefined;
  // All added options come before the operands.
  const head = reading.argv.slice(0, reading.argv.length - options.operands.length).filter((word) => word !== "--");
  const starts = folders.length === 0 ? ["."] : folders;
  const nul = seen.includes("null") || seen.includes(name === "rg" ? "0" : "Z");
  return { argv: [...head, ...(nul ? [] : oneLine), "--", ...pattern, ...starts], starts, nul };
}
