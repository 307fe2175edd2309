import { join, relative, resolve } from "node:path";
import { contains, realPath } from "../../files/paths.ts";
import { isTracked, linkedFolders, workTree } from "../../search/git-settings.ts";
import { GIT_COMMANDS, type GitCommand } from "./git-commands.ts";
import { parseRevision, pathOf, pathspecOf, splitOperands } from "./git-words.ts";
import { type Options, parseOptions, valuesOf } from "./options.ts";
import { type CommandPlace, type Reading, reads, unknown, words } from "./reading.ts";

/** Settings that override those with which git runs programs or writes; git-settings.ts checks for others. */
const NEUTRAL = [
  ...words(
    "core.fsmonitor=false core.hooksPath=/dev/null core.pager=cat diff.external= diff.submodule=short " +
      "diff.autoRefreshIndex=false log.showSignature=false log.diffMerges=separate stash.showPatch=false " +
      "stash.showIncludeUntracked=false status.submoduleSummary=false submodule.recurse=false " +
      "grep.fallbackToNoIndex=false gpg.program=false gpg.ssh.program=false gpg.x509.program=false " +
      "safe.bareRepository=explicit",
  ),
];
/** Settings that are only data and may be given with -c. */
const DATA_SETTING =
  /^(?:color\.[a-z.]+=[a-z0-9 #]*|core\.(?:quotepath|abbrev|autocrlf)=\w*|(?:core\.pager|pager\.[a-z-]+)=(?:cat|false|)|diff\.(?:algorithm|renames|context|noprefix|mnemonicprefix|wserrorhighlight)=[\w,-]*|log\.(?:date|decorate|abbrevcommit)=[\w:-]*)$/i;

interface GitLine {
  readonly cwd: string;
  readonly globals: readonly string[];
  readonly name: string;
  readonly args: readonly string[];
}

/** Options in front of the subcommand whose value is the next word. */
const GLOBAL_VALUE = /^(?:-[Cc]|--(?:git-dir|work-tree|namespace|super-prefix|config-env|attr-source))$/;

/** Whether the subcommand has forms that only show, whatever is in front of it and behind it. */
export function hasReadingSubcommand(args: readonly string[]): boolean {
  const at = args.findIndex((word, index) => !word.startsWith("-") && !GLOBAL_VALUE.test(args[index - 1] ?? ""));
  const name = args[at];
  if (name === undefined) return false;
  return lengthOf(name) === 1 ? GIT_COMMANDS.has(name) : GIT_COMMANDS.has(`${name} list`);
}

/** The number of words of a subcommand: some have commands of their own. */
function lengthOf(subcommand: string | undefined): number {
  return subcommand === "stash" || subcommand === "worktree" ? 2 : 1;
}

/** The subcommand with the options in front of it; or why it is not known to only read. */
export function readGlobals(args: readonly string[], place: CommandPlace): GitLine | string {
  let { cwd } = place;
  const globals: string[] = [];
  for (let at = 0; at < args.length; at++) {
    const word = args[at] ?? "";
    const value = args[at + 1] ?? "";
    if (!word.startsWith("-")) {
      const end = at + lengthOf(word);
      return { cwd, globals, name: args.slice(at, end).join(" "), args: args.slice(end) };
    }
    if (word === "--no-pager" || word === "-P" || word === "--no-optional-locks") continue;
    if (word === "-c" && DATA_SETTING.test(value)) globals.push(word, value);
    else if (word === "-C") {
      const folder = realPath(resolve(cwd, value));
      if (value === "" || folder === undefined || !contains(place.workspace.root, folder))
        return "-C with a folder that is not in the workspace";
      cwd = folder;
    } else return `${word === "-c" ? `-c ${value}` : word} before the subcommand changes what git runs, or where`;
    at += 1;
  }
  return "without a subcommand";
}

/** Allows subcommands that only show, in a work tree whose settings start no program, and overrides known risky settings. */
export function readGit(args: readonly string[], place: CommandPlace): Reading {
  if (args.length === 1 && args[0] === "version") return reads(["git", "version"]);
  const line = readGlobals(args, place);
  if (typeof line === "string") return unknown(`git ${line}`);
  const spec = GIT_COMMANDS.get(line.name);
  if (spec === undefined) return unknown(`git ${line.name} is not known to only read`);
  const options = parseOptions(line.args, spec);
  if (typeof options === "string") return unknown(`git ${line.name} ${options}`);
  const why = spec.why?.(options);
  if (why !== undefined) return unknown(`git ${line.name} ${why}`);
  if (!contains(place.workspace.root, line.cwd)) return unknown("git outside of the workspace");
  const tree = workTree(line.cwd);
  if (typeof tree === "string") return unknown(`git ${tree}`);
  const isOuter = !contains(place.workspace.root, tree.top);
  const contents = spec.contents === true || spec.contents?.(options) === true;
  const run = readOperands({ ...line, spec, options, place, top: tree.top, isOuter, contents });
  if (typeof run === "string") return unknown(`git ${line.name}: ${run}`);
  const neutral = NEUTRAL.flatMap((setting) => ["-c", setting]);
  const moved = line.cwd === place.cwd ? [] : ["-C", line.cwd];
  const argv = [
    "git",
    ...moved,
    ...line.globals,
    "--no-pager",
    "--no-optional-locks",
    ...neutral,
    ...line.name.split(" "),
  ];
  return reads([...argv, ...run.words], run.paths, run.trees);
}

/** More replaced folders than any work tree has. */
const MOST_LINKED = 100;

interface Scene extends GitLine {
  readonly spec: GitCommand;
  readonly options: Options;
  readonly place: CommandPlace;
  /** The top of the work tree. */
  readonly top: string;
  /** Whether the work tree reaches beyond the workspace. */
  readonly isOuter: boolean;
  /** Whether it shows the content of files. */
  readonly contents: boolean;
}

interface Run {
  readonly words: readonly string[];
  readonly paths?: readonly string[];
  /** What it shows the content of, with all below it. */
  readonly trees?: readonly string[];
}

/** The words after the subcommand and what they open; or why they are refused. */
function readOperands(scene: Scene): Run | string {
  const { spec, options, name, cwd, place } = scene;
  const { operands, words } = options;
  const added = spec.adds ?? [];
  switch (spec.operands) {
    case "none":
      return operands.length > 0 ? "it takes no operand here" : withContents(scene, [], [...added, ...words]);
    case "names":
      if (name === "config") return readConfig(scene);
      // Its verbs must not come after `--`.
      if (name === "remote") return { words: [...operands.slice(0, 1), ...words, ...operands.slice(1)] };
      return { words: [...words, ...(operands.length === 0 ? [] : ["--"]), ...operands] };
    case "paths": {
      const specs = splitOperands(operands, { ...options, hasDashes: true, afterDashes: operands.length }, cwd);
      if (typeof specs === "string") return specs;
      const { pathspecs, named } = specs;
      const bound = named.length > 0 || name === "check-ignore" ? [] : boundary(scene);
      return {
        words: [...added, ...words, "--", ...pathspecs, ...bound],
        paths: named.map((one) => pathOf(one, cwd, place.cwd)),
      };
    }
    case "revisions": {
      const revisions = operands.map(parseRevision);
      const bad = revisions.indexOf(undefined);
      if (bad !== -1 || options.hasDashes) return `${operands[bad] ?? "--"} is not a plain revision`;
      // With an explicit verb, git reads no operand as another verb.
      const verb = name === "reflog" ? ["show"] : [];
      if (name === "reflog" && /^(?:expire|delete|exists|drop|list|write)$/.test(operands[0] ?? ""))
        return `${operands[0]} changes it`;
      const shown = name === "reflog" && operands[0] === "show" ? operands.slice(1) : operands;
      return withContents(scene, shown, [...verb, ...added, ...words]);
    }
    case "walk":
      return readWalk(scene);
  }
}

/** The pathspec that limits a command to the workspace. */
function boundary({ isOuter, cwd, place }: Scene): readonly string[] {
  return isOuter ? [pathspecOf(place.workspace.root, cwd)] : [];
}

/** The run store in the work tree, relative to its top, where what it holds may have been committed. */
function storeOf({ top, place: { workspace } }: Scene): string | undefined {
  return workspace.store !== undefined && contains(top, workspace.store) ? relative(top, workspace.store) : undefined;
}

function withoutPath(path: string): string {
  return `:(exclude,top,literal)${path}`;
}

function objectPath(path: string, { top, cwd }: Scene): string {
  return resolve(/^\.\.?(?:\/|$)/.test(path) ? cwd : top, path);
}

/** Content that no pathspec limits: a named path in a revision, or anything in the repository. */
function withContents(scene: Scene, operands: readonly string[], words: readonly string[]): Run | string {
  const run = { words: [...words, ...operands] };
  if (!scene.contents) return run;
  const paths = operands.map((word) => parseRevision(word)?.path);
  const known = paths.filter((path) => path !== undefined);
  if (paths.length > 0 && known.length === paths.length)
    return { ...run, paths: known.map((path) => objectPath(path, scene)) };
  if (scene.isOuter) return "it may show files outside of the workspace: name REV:path";
  const store = storeOf(scene);
  const trees = [scene.top];
  if (store !== undefined && scene.name === "reflog") return { words: [...run.words, "--", withoutPath(store)], trees };
  if (store !== undefined && isTracked(scene.top, store)) return "it may show the run store: use git show COMMIT";
  return { ...run, trees };
}

const SAFE_KEY =
  /^(?:user\.(?:name|email)|core\.[a-z]+|init\.[a-z]+|pull\.[a-z]+|push\.[a-z]+|branch\.[^\n]+\.(?:remote|merge)|remote\.[^\n.@]+\.(?:url|fetch))$/i;

/** Allows a setting that holds no secret, from any scope; others only from the repository, whose config file is then read. */
function readConfig(scene: Scene): Run | string {
  const { options, top } = scene;
  const { operands, words, seen } = options;
  const [key = ""] = operands;
  const plain = SAFE_KEY.test(key) && !seen.has("get-regexp");
  const local = plain || seen.has("local") || seen.has("worktree") ? [] : ["--local"];
  const getter = ["get", "get-all", "get-regexp", "list", "l"].some((name) => seen.has(name)) ? [] : ["--get"];
  return {
    words: [...local, ...getter, ...words, ...operands],
    paths: plain ? [] : [resolve(top, ".git/config")],
  };
}

/** Options that name refs by what they are called; a tag may lead to a file. */
const REFS_OF_ANYTHING = ["all", "branches", "tags", "remotes", "glob"];

function readWalk(scene: Scene): Run | string {
  const { spec, options, name, cwd, place, top, isOuter, contents } = scene;
  const patternGiven = options.seen.has("e") || options.seen.has("f");
  const searched = spec.pattern === true && !patternGiven ? 1 : 0;
  const [pattern] = options.operands;
  if (
    searched === 1 &&
    (pattern === undefined || pattern.startsWith("-") || options.afterDashes === options.operands.length)
  )
    return "give the pattern with -e";
  const split = splitOperands(options.operands.slice(searched), options, cwd);
  if (typeof split === "string") return split;
  const { revisions, pathspecs, named } = split;
  const objects = revisions.filter(({ path }) => path !== undefined);
  const onlyObjects = objects.length > 0 && objects.length === revisions.length;
  if (objects.length > 0 && !/^(?:show|diff|grep|ls-tree)$/.test(name)) return "REV:path is not taken here";
  if (name === "diff" && objects.length > 0 && !onlyObjects) return "REV:path beside a revision is not taken";
  if (name === "blame" && (named.length !== 1 || pathspecs.length !== 1 || revisions.length > 1))
    return "it takes one existing file, or one after --";
  if (name === "ls-tree" && revisions.length !== 1) return "it takes one revision";

  // Both follow a file to earlier paths outside the given ones.
  const wanders =
    options.seen.has("L") && name !== "blame" && name !== "grep"
      ? "-L"
      : options.seen.has("follow") && contents
        ? "--follow"
        : undefined;
  if (wanders !== undefined && isOuter) return `${wanders} may show files outside of the workspace`;
  if (wanders === "-L" && pathspecs.length > 0) return "-L takes no further path";
  const store = contents ? storeOf(scene) : undefined;
  // No pathspec limits a file that is named by its id.
  const peels =
    contents &&
    /^(?:show|diff|grep)$/.test(name) &&
    (named.length > 0 || isOuter || (store !== undefined && isTracked(top, store)));
  const refs = REFS_OF_ANYTHING.find((option) => options.seen.has(option));
  if (peels && refs !== undefined) return `--${refs} may show something other than a commit`;
  const shown = revisions.map(({ path, commit, text }) => (peels && path === undefined ? commit : text));
  const bare = shown.indexOf(undefined);
  if (bare !== -1) return `${revisions[bare]?.text} may be something other than a commit`;

  const bounds =
    named.length > 0 || wanders === "-L" || (onlyObjects && name !== "show") || name === "ls-tree"
      ? []
      : boundary(scene);
  const leavesOut = !onlyObjects && wanders === undefined && name !== "blame" && store !== undefined;
  // Only grep opens files in a tracked folder that has become a link.
  const opensTree = name === "grep" && revisions.length === 0 && !options.seen.has("cached");
  const linked = opensTree ? linkedFolders(top) : [];
  if (linked === undefined || linked.length > MOST_LINKED) return "its index cannot be read";
  const without = [...linked, ...(leavesOut ? [store] : [])].map(withoutPath);
  const isWhole = contents && (wanders !== undefined || (named.length === 0 && !onlyObjects));
  const namedPaths = named.map((one) => pathOf(one, cwd, place.cwd));
  const objectPaths = objects.map(({ path = "" }) => objectPath(path, scene));
  const whole = isWhole ? [isOuter ? place.workspace.root : top] : [];
  const followed =
    wanders === "-L" ? valuesOf(options, "L").map((lines) => lines.slice(lines.lastIndexOf(":") + 1)) : [];
  const files = [...options.files, ...followed].map((file) => (cwd === place.cwd ? file : resolve(cwd, file)));
  // Names alone are shown without a rule, blame takes one file, and of a folder in a revision show prints only the names.
  const isDeep = contents && name !== "blame";
  const isDeepObject = isDeep && name !== "show";
  const above = (path: string): boolean =>
    store !== undefined && path !== join(top, store) && contains(path, join(top, store));
  if (isDeepObject && objectPaths.some(above)) return "REV:path is a folder around the run store";
  const searchWords = searched === 1 && pattern !== undefined ? ["-e", pattern] : [];
  const words = [...(spec.adds ?? []), ...options.words, ...searchWords, ...shown.filter((word) => word !== undefined)];
  return {
    words: [...words, "--", ...pathspecs, ...bounds, ...without],
    trees: [...(isDeep ? namedPaths : []), ...(isDeepObject ? objectPaths : []), ...whole],
    paths: [...(isDeep ? [] : namedPaths), ...(isDeepObject ? [] : objectPaths), ...files],
  };
}
