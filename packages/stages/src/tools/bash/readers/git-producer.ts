import { relative } from "node:path";
import { contains } from "../../files/paths.ts";
import { entriesBeside, workTree } from "../../search/git-settings.ts";
import type { PathProducer } from "./find.ts";
import { readGlobals } from "./git.ts";
import { GIT_COMMANDS } from "./git-commands.ts";
import { pathOf, splitOperands } from "./git-words.ts";
import { type Options, parseOptions } from "./options.ts";
import { type CommandPlace, words } from "./reading.ts";

/** A command of git that can print only names of files. */
interface NamePrinter {
  /** One of these makes it print names. */
  readonly by?: ReadonlySet<string>;
  /** Other options that leave it at names. */
  readonly options: ReadonlySet<string>;
  /** Options to add against settings. */
  readonly adds: readonly string[];
  /** Whether it also prints names that are not in the index, which may be anything on disk. */
  readonly ofHistory: boolean;
  /** Options with which names end in NUL. */
  readonly nul: readonly string[];
}

const PRINTERS = new Map<string, NamePrinter>([
  [
    "ls-files",
    {
      options: words("z c cached m modified d deleted deduplicate exclude-standard"),
      adds: [],
      ofHistory: false,
      nul: ["z"],
    },
  ],
  [
    "grep",
    {
      by: words("l files-with-matches name-only L files-without-match"),
      options: words(
        "z null n line-number i ignore-case w word-regexp v invert-match I a text e and or not all-match cached max-depth " +
          "E extended-regexp F fixed-strings G basic-regexp P perl-regexp",
      ),
      adds: ["--no-color", "--no-full-name"],
      ofHistory: false,
      nul: ["z", "null"],
    },
  ],
  [
    "diff",
    {
      by: words("name-only"),
      options: words("z cached staged merge-base relative diff-filter no-renames M find-renames no-color"),
      adds: ["--no-color"],
      ofHistory: true,
      nul: ["z"],
    },
  ],
]);

/** Names that a command could take for an option. */
const OPTION_LIKE = ":(exclude)[-+@]*";
/** Names that are printed in quotes unless they end in NUL. */
const QUOTED = ':(exclude)*[[:cntrl:]"\\\\]*';
/** More than that is too long for a line. */
const MOST_CHARACTERS = 32_768;

/**
 * Rewrites `git ls-files`, `git grep -l` and `git diff --name-only` to a `PathProducer`; undefined if it may print anything but
 * paths from the current folder on.
 */
export function gitProducer(args: readonly string[], place: CommandPlace): PathProducer | undefined {
  const line = readGlobals(args, place);
  if (typeof line === "string" || line.cwd !== place.cwd) return undefined;
  const { name, globals, cwd } = line;
  const printer = PRINTERS.get(name);
  const spec = GIT_COMMANDS.get(name);
  if (printer === undefined || spec === undefined || !contains(place.workspace.root, cwd)) return undefined;
  const options = parseOptions(line.args, spec);
  const tree = workTree(cwd);
  if (typeof options === "string" || typeof tree === "string" || !printsNames(options, printer)) return undefined;
  const { top } = tree;
  // Without --relative, diff prints paths from the top of the work tree.
  const isRelative = options.seen.has("relative");
  if (name === "diff" && (isRelative ? options.seen.get("relative")?.length !== 0 : cwd !== top)) return undefined;

  const patternGiven = options.seen.has("e");
  const pattern = name === "grep" && !patternGiven ? options.operands.slice(0, 1) : [];
  const onlyPaths = name === "ls-files" ? { hasDashes: true, afterDashes: options.operands.length } : {};
  const split = splitOperands(options.operands.slice(pattern.length), { ...options, ...onlyPaths }, cwd);
  if (typeof split === "string" || pattern.some((word) => word.startsWith("-"))) return undefined;
  const { revisions, pathspecs, named } = split;
  if (revisions.some(({ path }) => path !== undefined) || (revisions.length > 0 && !printer.ofHistory))
    return undefined;
  if (named.some((path) => path.startsWith("/") || path.split("/").includes(".."))) return undefined;
  const withoutOthers = leaveOut(top, printer, place);
  if (withoutOthers === undefined) return undefined;

  const nul = printer.nul.some((option) => options.seen.has(option));
  const searched = pattern.flatMap((word) => ["-e", word]);
  const given = named.length > 0 ? pathspecs : [".", ...pathspecs];
  const argv = ["git", ...globals, "-c", "core.quotePath=false", name, ...printer.adds, ...options.words, ...searched];
  return {
    argv: [
      ...argv,
      ...revisions.map(({ text }) => text),
      "--",
      ...given,
      OPTION_LIKE,
      ...(nul ? [] : [QUOTED]),
      ...withoutOthers,
    ],
    starts: named.length > 0 ? named.map((path) => pathOf(path, cwd, cwd)) : ["."],
    nul,
  };
}

function printsNames({ seen, words: given }: Options, { by, options }: NamePrinter): boolean {
  const names = [...seen.keys()];
  const isCount = given.some((word) => /^-[0-9]/.test(word));
  return (
    !isCount &&
    names.every((one) => options.has(one) || by?.has(one)) &&
    (by === undefined || names.some((one) => by.has(one)))
  );
}

/** Pathspecs without the links of the work tree and the run store, and without what is not tracked if that could be named. */
function leaveOut(
  top: string,
  { ofHistory }: NamePrinter,
  { workspace: { store } }: CommandPlace,
): readonly string[] | undefined {
  const beside = entriesBeside(top);
  if (beside === undefined) return undefined;
  const own = store !== undefined && contains(top, store) ? [relative(top, store)] : [];
  const left = [...beside.links, ...(ofHistory ? beside.folders : []), ...own].map(
    (path) => `:(exclude,top,literal,icase)${path}`,
  );
  return left.join(" ").length > MOST_CHARACTERS ? undefined : left;
}
