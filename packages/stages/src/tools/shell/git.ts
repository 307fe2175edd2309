import { type OptionSpec, type ParsedOptions, parseOptions } from "./options.ts";
import { type Inner, joined, type Unwrapped } from "./shells.ts";
import type { Reading } from "./special-readers.ts";
import { literalWord, type ShellWord, tail } from "./word.ts";

/** Options before the subcommand that change neither what git runs nor where it looks. */
const HARMLESS_GLOBALS = new Set([
  "--no-pager",
  "-P",
  "--literal-pathspecs",
  "--glob-pathspecs",
  "--noglob-pathspecs",
  "--no-optional-locks",
]);
const VALUED_GLOBALS = new Set([
  "-C",
  "-c",
  "--git-dir",
  "--work-tree",
  "--namespace",
  "--super-prefix",
  "--config-env",
  "--exec-path",
  "--attr-source",
]);

interface GitLine {
  /** Only harmless options stand before the subcommand. */
  readonly plain: boolean;
  /** Values of `-c`. */
  readonly configs: readonly ShellWord[];
  readonly subcommand: string | undefined;
  readonly args: readonly ShellWord[];
}

function readGit(words: readonly ShellWord[]): GitLine {
  let plain = true;
  const configs: ShellWord[] = [];
  for (let at = 1; at < words.length; at++) {
    const word = words[at];
    if (word === undefined || word.dynamic) break;
    if (!word.text.startsWith("-")) return { plain, configs, subcommand: word.text, args: words.slice(at + 1) };
    if (HARMLESS_GLOBALS.has(word.text)) continue;
    plain = false;
    if (!VALUED_GLOBALS.has(word.text)) continue;
    const value = words[++at];
    if (value !== undefined && (word.text === "-c" || word.text === "--config-env")) configs.push(value);
  }
  return { plain: false, configs, subcommand: undefined, args: [] };
}

/** Settings that are only data. Most others name a program somewhere. */
const DATA_SETTING =
  /^(?:color\.|advice\.|user\.(?:name|email)$|init\.defaultbranch$|core\.(?:quotepath|autocrlf|abbrev)$|log\.|commit\.gpgsign$|diff\.(?:algorithm|renames|context)$)/i;

/** Commands inside a git command line: settings that name programs, and subcommands that run what they are given. */
export function unwrapGit(words: readonly ShellWord[]): Unwrapped | undefined {
  const line = readGit(words);
  const inner: Inner[] = line.configs.flatMap(configured);
  if (line.subcommand === undefined && words.length > 1 && words.some((word) => word.dynamic)) {
    inner.push({ kind: "unseen", text: words.map((word) => word.text).join(" "), via: "git" });
  }
  inner.push(...runBySubcommand(line));
  return inner.length === 0 ? undefined : { transparent: false, inner };
}

function configured(setting: ShellWord): readonly Inner[] {
  const equals = setting.head.indexOf("=");
  if (equals === -1) return setting.dynamic ? [{ kind: "unseen", text: setting.text, via: "git -c" }] : [];
  if (DATA_SETTING.test(setting.head.slice(0, equals))) return [];
  const value = tail(setting, equals + 1);
  return [joined([value.text.startsWith("!") && !value.dynamic ? tail(value, 1) : value], "posix", "git -c")];
}

/** Options of any subcommand whose value is a command. */
const RUNNING_OPTIONS = /^--(?:upload-pack|receive-pack|exec|extcmd|open-files-in-pager|[a-z]+-filter)(?:=|$)/;
/** The same in one letter, where it has that meaning. */
const RUNNING_LETTERS: Readonly<Record<string, string>> = { rebase: "x", difftool: "x", grep: "O", clone: "u" };

function runBySubcommand(line: GitLine): readonly Inner[] {
  const { subcommand, args } = line;
  if (subcommand === undefined) return [];
  const via = `git ${subcommand}`;
  const inner: Inner[] = [];
  const letter = RUNNING_LETTERS[subcommand];
  for (const [at, word] of args.entries()) {
    const long = RUNNING_OPTIONS.exec(word.head)?.[0];
    if (long !== undefined) {
      const value = long.endsWith("=") ? tail(word, long.length) : args[at + 1];
      if (value !== undefined) inner.push(joined([value], "posix", via));
    } else if (letter !== undefined && word.head.startsWith(`-${letter}`)) {
      const value = word.text.length > 2 ? tail(word, 2) : args[at + 1];
      if (value !== undefined) inner.push(joined([value], "posix", via));
    } else if (word.head.startsWith("ext::")) inner.push(joined([tail(word, 5)], "posix", via));
  }
  const verb = args[0]?.text;
  if (subcommand === "bisect" && verb === "run" && args.length > 1)
    inner.push({ kind: "words", words: args.slice(1), via });
  if (subcommand === "submodule" && args.some((word) => word.text === "foreach")) {
    const rest = args
      .slice(args.findIndex((word) => word.text === "foreach") + 1)
      .filter((word) => word.text !== "--recursive");
    if (rest.length > 0) inner.push(joined(rest, "posix", via));
  }
  return inner;
}

interface Subcommand extends OptionSpec {
  /** Operands: paths or revisions (both are reported as paths), or names that are no files. */
  readonly operands: "paths" | "names" | "none";
  /** Shows what is in files, so that without operands it reads them all. */
  readonly contents?: boolean;
  /** The first operand is what to look for, unless `-e` or `-f` gave it. */
  readonly pattern?: boolean;
  /** Refuses what the options alone cannot. */
  readonly reads?: (options: ParsedOptions) => boolean;
}

const DIFF_SHORT = "pusztwbRaMCDUWBG:S:O!X?U?n:M?C?B?l:";
const DIFF_LONG =
  "patch no-patch unified: raw minimal patience histogram diff-algorithm: stat? numstat shortstat dirstat? cumulative " +
  "summary patch-with-stat name-only name-status no-color color? color-moved? word-diff? word-diff-regex: color-words? " +
  "no-renames check full-index binary abbrev? no-abbrev find-renames? find-copies? find-copies-harder diff-filter: " +
  "pickaxe-all pickaxe-regex relative? no-relative text ignore-cr-at-eol ignore-space-at-eol ignore-space-change " +
  "ignore-all-space ignore-blank-lines ignore-matching-lines: inter-hunk-context: function-context exit-code quiet " +
  "src-prefix: dst-prefix: no-prefix line-prefix: no-ext-diff no-textconv ignore-submodules? submodule? cached staged " +
  "merge-base";
const LOG_LONG =
  `${DIFF_LONG} max-count: skip: since: after: until: before: author: committer: grep: all-match invert-grep ` +
  "regexp-ignore-case basic-regexp extended-regexp fixed-strings perl-regexp merges no-merges min-parents: max-parents: " +
  "first-parent all branches? tags? remotes? glob: exclude: reverse oneline pretty? format: abbrev-commit no-abbrev-commit " +
  "decorate? no-decorate decorate-refs: source follow graph no-graph date: relative-date parents children left-right " +
  "cherry cherry-pick cherry-mark topo-order date-order author-date-order full-history simplify-by-decoration no-walk? " +
  "no-notes notes? no-patch boundary ancestry-path? left-only right-only full-diff root diff-merges: walk-reflogs";
const LOG_SHORT = "pusztwbRaciFEPgnqi0mn:G:S:U:L:n:M?C?B?l:";

/** `%G…` and `%(signature)` in a format run the signature program, and so does sorting by it. */
function noSignatures(options: ParsedOptions): boolean {
  const values = (...names: readonly string[]) => names.flatMap((name) => options.seen.get(name) ?? []);
  const formats = values("format", "pretty");
  return (
    formats.every((format) => !format.dynamic && !/%G|%\(\*?signature/.test(format.text)) &&
    values("sort").every((key) => !key.dynamic && !key.text.includes("signature"))
  );
}

/** `--submodule=diff` runs git in the submodule, with its settings. */
function noSubmodules({ seen }: ParsedOptions): boolean {
  return (seen.get("submodule") ?? []).every(({ text, dynamic }) => !dynamic && (text === "short" || text === "log"));
}

const SUBCOMMANDS: Readonly<Record<string, Subcommand>> = {
  status: {
    short: "sbvzu?",
    long: "short branch show-stash porcelain? long verbose untracked-files? ignored? ignore-submodules? column? no-column ahead-behind no-ahead-behind renames no-renames find-renames?",
    operands: "paths",
  },
  log: { short: LOG_SHORT, long: LOG_LONG, numeric: true, operands: "paths", contents: true },
  show: { short: LOG_SHORT, long: LOG_LONG, numeric: true, operands: "paths", contents: true },
  diff: { short: DIFF_SHORT, long: DIFF_LONG, numeric: true, operands: "paths", contents: true },
  "ls-files": {
    short: "zcdomsuktvfx:X!",
    long: "cached deleted modified others ignored stage unmerged killed directory no-empty-directory eol deduplicate exclude: exclude-standard full-name abbrev? error-unmatch with-tree: format:",
    operands: "paths",
  },
  "ls-tree": {
    short: "drtlz",
    long: "long name-only name-status full-name full-tree abbrev? format:",
    operands: "paths",
  },
  blame: {
    short: "bsltfnwpeL:M?C?",
    long: "root show-stats show-name show-number show-email date: porcelain line-porcelain since: abbrev:",
    operands: "paths",
    contents: true,
  },
  "rev-parse": {
    short: "q",
    long: "verify quiet short? abbrev-ref? symbolic symbolic-full-name show-toplevel show-prefix show-cdup git-dir absolute-git-dir git-common-dir is-inside-work-tree is-inside-git-dir is-bare-repository is-shallow-repository all branches? tags? remotes? revs-only no-revs flags no-flags default: show-object-format?",
    operands: "names",
  },
  "rev-list": {
    short: "n:",
    long: "count all max-count: since: until: author: reverse no-merges merges first-parent left-right",
    numeric: true,
    operands: "paths",
  },
  "merge-base": { short: "a", long: "all is-ancestor fork-point octopus independent", operands: "names" },
  describe: {
    long: "all tags contains abbrev: candidates: exact-match long match: exclude: always first-parent dirty?",
    operands: "names",
  },
  branch: {
    short: "arvqi",
    long: "all remotes verbose list show-current contains: no-contains: merged: no-merged: sort: format: points-at: color? no-color column? no-column ignore-case abbrev? no-abbrev",
    operands: "names",
    reads: (options) => options.operands.length === 0 || options.seen.has("list"),
  },
  tag: {
    short: "lni",
    long: "list contains: no-contains: merged: no-merged: sort: format: points-at: color? column? no-column ignore-case",
    operands: "names",
    reads: (options) => options.operands.length === 0 || options.seen.has("list") || options.seen.has("l"),
  },
  remote: {
    short: "v",
    long: "verbose",
    operands: "names",
    reads: ({ operands }) =>
      operands.length === 0 || (operands[0]?.dynamic === false && operands[0].text === "get-url"),
  },
  config: {
    short: "lz",
    long: "get get-all get-regexp list null name-only show-origin show-scope local global system worktree includes no-includes type: bool int path default:",
    operands: "names",
    // `git config a.b` shows it, `git config a.b value` sets it, and newer versions know `git config edit`. Settings that are not
    // the repository's own lie outside the workspace, and may hold passwords.
    reads: ({ seen, operands }) =>
      ["local", "worktree"].some((name) => seen.has(name)) &&
      !["global", "system", "includes"].some((name) => seen.has(name)) &&
      (["get", "get-all", "get-regexp", "list", "l"].some((name) => seen.has(name)) ||
        (operands.length === 1 && operands[0]?.head.includes(".") === true)),
  },
  grep: {
    short: "nilLcwvEFGPhHoqzarIWpe:m:A:B:C:f@",
    long: "line-number ignore-case files-with-matches name-only files-without-match count word-regexp invert-match extended-regexp fixed-strings basic-regexp perl-regexp heading break color? no-color cached untracked exclude-standard no-exclude-standard max-depth: context: after-context: before-context: show-function function-context only-matching quiet null text and or not all-match max-count: column full-name recursive no-recursive recurse-submodules",
    numeric: true,
    operands: "paths",
    contents: true,
    pattern: true,
    // What is ignored may be kept from tools for a reason, as the run store is.
    reads: ({ seen }) => !seen.has("no-exclude-standard"),
  },
  "cat-file": { short: "pte", operands: "paths", contents: true },
  shortlog: { short: "snec", long: "summary numbered email group: since: until: no-merges all", operands: "paths" },
  reflog: {
    short: "n:",
    long: "all oneline date: max-count: no-color",
    numeric: true,
    operands: "names",
    reads: ({ operands }) => operands.length === 0 || operands[0]?.text === "show",
  },
  stash: {
    short: "pu",
    long: "patch stat oneline",
    operands: "names",
    contents: true,
    reads: ({ operands }) =>
      operands[0]?.dynamic === false && (operands[0].text === "list" || operands[0].text === "show"),
  },
  "for-each-ref": {
    long: "count: sort: format: points-at: merged: no-merged: contains: no-contains: ignore-case",
    operands: "names",
  },
  "show-ref": {
    short: "sd",
    long: "heads branches tags head dereference hash? abbrev? verify quiet",
    operands: "names",
  },
  "check-ignore": { short: "vnq", long: "verbose non-matching quiet no-index", operands: "paths" },
  "count-objects": { short: "vH", long: "verbose human-readable", operands: "none" },
};

/** Subcommands that only show, with options that keep them so, run where the line starts. */
export function readGitCommand(words: readonly ShellWord[]): Reading {
  if (words.length === 2 && words[1]?.dynamic === false && words[1].text === "--version")
    return { readOnly: true, paths: [] };
  const line = readGit(words);
  const spec =
    line.subcommand !== undefined && Object.hasOwn(SUBCOMMANDS, line.subcommand)
      ? SUBCOMMANDS[line.subcommand]
      : undefined;
  if (spec === undefined) return { readOnly: false, paths: [] };
  const options = parseOptions(line.args, spec);
  const readOnly =
    line.plain &&
    options.known &&
    !options.unsure &&
    noSignatures(options) &&
    noSubmodules(options) &&
    (spec.reads?.(options) ?? true);
  const pattern = spec.pattern === true && !options.unsure && !options.seen.has("e") && !options.seen.has("f");
  const named = pattern ? options.operands.slice(1) : options.operands;
  const operands = spec.operands === "paths" ? named.flatMap(revisionPath) : [];
  const given = [...operands, ...options.files];
  if (spec.contents !== true) return { readOnly, paths: given };
  if (given.length === 0) return { readOnly, paths: [literalWord(".")] };
  // Objects by name: what is in them can be anything.
  if (line.subcommand === "cat-file")
    return { readOnly, paths: named.some(isWhole) ? [...given, literalWord(".")] : given };
  return { readOnly, paths: given, ...(mayNameRevision(line, named) ? { opens: "revision" } : {}) };
}

/** In front of `--` a word may be a branch called like a folder, which stands for all that is in it. */
function mayNameRevision({ subcommand, args }: GitLine, named: readonly ShellWord[]): boolean {
  if (subcommand === "blame") return false;
  const dashes = args.findIndex((word) => !word.dynamic && word.text === "--");
  const before = dashes === -1 ? args : args.slice(0, dashes);
  return named.some((word) => before.includes(word) && isWhole(word));
}

/** Not a file of a revision: `HEAD:src/a.ts`. */
function isWhole(word: ShellWord): boolean {
  return !word.head.includes(":");
}

/** `HEAD:src/a.ts` names a file in a revision; `:(top)…` and its kin name one from elsewhere. */
function revisionPath(word: ShellWord): readonly ShellWord[] {
  if (word.text.startsWith(":")) return [{ text: word.text, dynamic: true, head: "", single: true, pipe: false }];
  const colon = word.head.indexOf(":");
  if (colon === -1) return [word];
  const path = tail(word, colon + 1);
  return [path.text === "" ? literalWord(".") : path];
}
