import { type OptionSpec, type Options, valuesOf } from "./options.ts";
import { words } from "./reading.ts";

/** The argument spec of one subcommand. */
export interface GitCommand extends OptionSpec {
  /**
   * `walk`: revisions and paths. `paths`: only paths. `revisions`: paths only in `REV:path`. `names`: names of refs, settings and
   * remotes. `none`: no operands.
   */
  readonly operands: "walk" | "paths" | "revisions" | "names" | "none";
  /** Whether it shows the content of files. */
  readonly contents?: true | ((options: Options) => boolean);
  /** Options to add. */
  readonly adds?: readonly string[];
  /** Whether the first operand is a pattern, unless `-e` or `-f` gave one. */
  readonly pattern?: boolean;
  /** Why it is refused even though all its options are listed. */
  readonly why?: (options: Options) => string | undefined;
}

const SELECTS =
  "minimal patience histogram diff-algorithm: no-color color? no-renames full-index abbrev? no-abbrev find-renames? " +
  "find-copies? find-copies-harder diff-filter: relative? no-relative text ignore-cr-at-eol ignore-space-at-eol " +
  "ignore-space-change ignore-all-space ignore-blank-lines ignore-matching-lines: inter-hunk-context: exit-code quiet " +
  "src-prefix: dst-prefix: no-prefix line-prefix: no-ext-diff no-textconv no-patch pickaxe-all pickaxe-regex";
const SUMMARIES = "stat? compact-summary numstat shortstat dirstat? cumulative summary name-only name-status raw";
/** With one of these, a command that lists changes also shows content, or lets it be guessed. */
const PATCHES =
  "patch unified? patch-with-stat color-moved? color-moved-ws? word-diff? word-diff-regex: color-words? check binary function-context " +
  "cc diff-merges: combined-all-paths";
const DIFF_LETTERS = "pusztwbRaWDS:G:I:U?M?C?B?l:";
const PATCH_NAMES = words(
  `p u U W c m L S G I ignore-matching-lines B C break-rewrites find-copies find-copies-harder ${PATCHES.replace(/[:?]/g, "")}`,
);
const SUMMARY_NAMES = new Set(["s", "no-patch", "quiet", ...SUMMARIES.replace(/[:?]/g, "").split(" ")]);

const WALKS =
  "max-count: skip: since: after: until: before: author: committer: grep: all-match invert-grep regexp-ignore-case basic-regexp " +
  "extended-regexp fixed-strings perl-regexp merges no-merges min-parents: max-parents: first-parent all branches? tags? remotes? " +
  "glob: exclude: reverse oneline pretty? format: abbrev-commit no-abbrev-commit decorate? no-decorate decorate-refs: " +
  "decorate-refs-exclude: source follow graph no-graph date: relative-date parents children left-right cherry cherry-pick " +
  "cherry-mark topo-order date-order author-date-order full-history simplify-by-decoration simplify-merges no-walk? no-notes notes? " +
  "boundary ancestry-path? left-only right-only root walk-reflogs";
const WALK_LETTERS = `${DIFF_LETTERS}ciFEPgnqm`.replace("gn", "gn:");

function shows(names: ReadonlySet<string>, { seen }: Options): boolean {
  return [...seen.keys()].some((name) => names.has(name));
}

/** Fields that are read from refs alone: no content, no signatures. */
const FIELD =
  /^\*?(?:refname|objectname|objecttype|objectsize|upstream|push|HEAD|symref|worktreepath|subject|contents:subject|numparent|parent|tree|(?:author|committer|tagger)(?:name|email|date)?|creator(?:date)?|version:refname|v:refname|align|end|if|then|else|color)(?::[^()%]*)?$/;

/** Refuses formats and sort keys that verify signatures, print content or start git again. */
function formats(options: Options): string | undefined {
  for (const format of valuesOf(options, "pretty"))
    if (/%[-+ ]?[G(]/.test(format)) return `--pretty=${format} may start programs`;
  for (const format of valuesOf(options, "format")) {
    if (/%[-+ ]?G/.test(format)) return "--format with %G verifies signatures";
    const fields = [...format.matchAll(/%[-+ ]?\(([^)]*)\)?/g)].map(([, field = ""]) => field);
    if (fields.some((field) => !FIELD.test(field))) return "--format with a %(field) that is not on the list";
  }
  const keys = valuesOf(options, "sort").map((key) => key.replace(/^-/, ""));
  return keys.every((key) => FIELD.test(key)) ? undefined : "--sort with a key that is not on the list";
}

const MERGES = /^(?:off|none|on|m|first-parent|1|separate|combined|c|dense-combined|cc)$/;
const LINES = /^(?:[0-9]+,\+?[0-9]+|:[\w.]+):[^:]+$/;

function walkFault(options: Options): string | undefined {
  if (!valuesOf(options, "diff-merges").every((how) => MERGES.test(how))) return "--diff-merges=remerge writes objects";
  if (!valuesOf(options, "L").every((lines) => LINES.test(lines))) return "-L takes START,END:FILE or :NAME:FILE";
  return formats(options);
}

const REFUSED = {
  "writes a file": "output",
  "starts a program": "ext-diff textconv O open-files-in-pager upload-pack exec show-signature",
  "writes objects": "remerge-diff",
  "shows files other than the named ones": "full-diff no-index untracked contents",
};
const NO_DRIVERS = ["--no-ext-diff", "--no-textconv"];
/** Otherwise git runs again in each submodule. */
const NO_SUBMODULES = "--ignore-submodules=dirty";

const LOG: GitCommand = {
  short: `${WALK_LETTERS}L:`,
  long: `${SELECTS} ${SUMMARIES} ${PATCHES} ${WALKS}`,
  numeric: true,
  refuses: REFUSED,
  operands: "walk",
  contents: (options) => shows(PATCH_NAMES, options),
  adds: NO_DRIVERS,
  why: walkFault,
};

const REFS = "contains~ no-contains~ merged~ no-merged~ sort: format: points-at: color? no-color no-column ignore-case";

export const GIT_COMMANDS: ReadonlyMap<string, GitCommand> = new Map(
  Object.entries<GitCommand>({
    status: {
      short: "sbzu?",
      long: "short branch show-stash porcelain? long untracked-files? ignored? no-column ahead-behind no-ahead-behind renames no-renames find-renames?",
      operands: "paths",
      adds: [NO_SUBMODULES],
    },
    log: LOG,
    whatchanged: LOG,
    show: { ...LOG, contents: true },
    diff: {
      short: DIFF_LETTERS,
      long: `${SELECTS} ${SUMMARIES} ${PATCHES} cached staged merge-base`,
      numeric: true,
      refuses: REFUSED,
      operands: "walk",
      contents: (options) => shows(PATCH_NAMES, options) || !shows(SUMMARY_NAMES, options),
      adds: [...NO_DRIVERS, NO_SUBMODULES],
      why: walkFault,
    },
    "ls-files": {
      short: "zcdomsuktvx:",
      long: "cached deleted modified others ignored stage unmerged killed directory no-empty-directory eol deduplicate exclude: exclude-standard full-name abbrev? error-unmatch",
      operands: "paths",
    },
    "ls-tree": { short: "drtlz", long: "long name-only name-status full-name abbrev?", operands: "walk" },
    blame: {
      short: "bsltfnwpeL:M?C?",
      long: "root show-stats show-name show-number show-email date: porcelain line-porcelain since: abbrev: first-parent",
      refuses: REFUSED,
      operands: "walk",
      contents: true,
      adds: ["--no-textconv"],
    },
    "rev-parse": {
      short: "q",
      long: "verify quiet short? abbrev-ref? symbolic symbolic-full-name show-toplevel show-prefix show-cdup git-dir absolute-git-dir git-common-dir is-inside-work-tree is-inside-git-dir is-bare-repository is-shallow-repository all branches? tags? remotes? show-object-format?",
      operands: "revisions",
    },
    "rev-list": {
      short: "n:",
      long: "count all max-count: skip: since: until: author: reverse no-merges merges first-parent left-right branches? tags? remotes? abbrev-commit oneline",
      numeric: true,
      operands: "walk",
    },
    "merge-base": { short: "a", long: "all is-ancestor fork-point octopus independent", operands: "revisions" },
    cherry: { short: "v", long: "verbose abbrev?", operands: "revisions" },
    "show-branch": {
      short: "ar",
      long: "all remotes topo-order date-order current color? no-color sparse more: list independent merge-base no-name sha1-name topics",
      operands: "revisions",
    },
    describe: {
      long: "all tags contains abbrev: candidates: exact-match long match: exclude: always first-parent",
      refuses: { "refreshes the index": "dirty broken" },
      operands: "revisions",
    },
    "name-rev": { long: "name-only tags refs: exclude: all always no-undefined", operands: "revisions" },
    branch: {
      short: "arvqi",
      long: `all remotes verbose list show-current abbrev? no-abbrev ${REFS}`,
      operands: "names",
      why: (options) =>
        options.operands.length === 0 || options.seen.has("list")
          ? formats(options)
          : "with a name may create a branch: add --list",
    },
    tag: {
      short: "ln?i",
      long: `list ${REFS}`,
      operands: "names",
      why: (options) =>
        options.operands.length === 0 || options.seen.has("list") || options.seen.has("l")
          ? formats(options)
          : "with a name creates a tag: add --list",
    },
    remote: {
      short: "v",
      long: "verbose push all",
      operands: "names",
      why: ({ operands }) =>
        operands.length === 0 || (operands[0] === "get-url" && /^[^-]/.test(operands[1] ?? "") && operands.length === 2)
          ? undefined
          : "only lists, or shows with get-url",
    },
    config: {
      short: "lz",
      long: "get get-all get-regexp list null name-only show-origin show-scope local worktree type: bool int path default:",
      refuses: {
        "shows settings outside of the workspace": "global system includes f file blob",
        "changes settings": "e edit unset unset-all add replace-all rename-section remove-section",
      },
      operands: "names",
      why: ({ operands, seen }) => {
        const lists = seen.has("list") || seen.has("l");
        if (operands.length !== (lists ? 0 : 1)) return "with more than one name changes settings";
        return lists || operands[0]?.includes(".") === true || seen.has("get-regexp")
          ? undefined
          : "takes a name like user.name";
      },
    },
    grep: {
      short: "nilLcwvEFGPhHoqzaIWpe:m:A:B:C:f@",
      long: "line-number ignore-case files-with-matches name-only files-without-match count word-regexp invert-match extended-regexp fixed-strings basic-regexp perl-regexp heading break color? no-color cached max-depth: context: after-context: before-context: show-function function-context only-matching quiet null text and or not all-match max-count: column full-name no-full-name recursive no-recursive",
      numeric: true,
      refuses: {
        ...REFUSED,
        "searches submodules": "recurse-submodules",
        "searches ignored files": "no-exclude-standard",
      },
      operands: "walk",
      contents: true,
      pattern: true,
      adds: ["--no-textconv"],
    },
    "cat-file": {
      short: "ptes",
      refuses: REFUSED,
      operands: "revisions",
      contents: ({ seen }) => !["t", "e", "s"].some((name) => seen.has(name)),
      why: ({ operands, seen }) =>
        seen.size === 1 && operands.length === 1 ? undefined : "takes one of -p, -t, -s, -e and one object",
    },
    shortlog: { short: "snec", long: "summary numbered email group: since: until: no-merges all", operands: "walk" },
    reflog: { ...LOG, operands: "revisions" },
    "stash list": { ...LOG, operands: "none" },
    "stash show": {
      short: DIFF_LETTERS,
      long: `${SELECTS} ${SUMMARIES} ${PATCHES}`,
      refuses: REFUSED,
      operands: "revisions",
      contents: (options) => shows(PATCH_NAMES, options),
      adds: NO_DRIVERS,
    },
    "for-each-ref": { long: `count: ${REFS}`, operands: "names", why: formats },
    "show-ref": { short: "sd", long: "heads tags head dereference hash? abbrev? verify quiet", operands: "names" },
    "check-ignore": { short: "vnq", long: "verbose non-matching quiet no-index", operands: "paths" },
    "check-attr": {
      short: "az",
      long: "all cached",
      operands: "paths",
      why: ({ seen }) => (seen.has("a") || seen.has("all") ? undefined : "takes -a and files"),
    },
    "count-objects": { short: "vH", long: "verbose human-readable", operands: "none" },
    "symbolic-ref": {
      short: "q",
      long: "short quiet",
      refuses: { "deletes it": "d delete" },
      operands: "names",
      why: ({ operands }) => (operands.length === 1 ? undefined : "with two names changes the first"),
    },
    "worktree list": { short: "vz", long: "verbose porcelain", operands: "none" },
  }),
);
