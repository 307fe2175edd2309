import { climbsBack, type Directories, join, START } from "./directory.ts";
import { ShellRefusal } from "./refusal.ts";
import type { Dialect } from "./shells.ts";
import { type ShellWord, unknownWord } from "./word.ts";

/** A path a command line touches, seen from where the line starts. */
export interface ShellPath {
  /** As written, after quote removal; relative ones with the folders that `cd` entered in front, not normalised. */
  readonly path: string;
  readonly access: "read" | "write";
  /** Only known when it runs: the text still holds its expansions. */
  readonly dynamic: boolean;
  readonly from: "redirect" | "operand" | "cd";
  /** Of a dynamic path that is only a glob: the folder all its matches lie below, before links. */
  readonly within?: string;
  readonly opens?: Opens;
}

/**
 * What a command opens besides what it is given. Of a folder: the files directly in it, through links too, or all below but
 * folders of these names. Of a word that is no file: all that is in the revision of this name.
 */
export type Opens = "entries" | "revision" | AllBut;
export interface AllBut {
  readonly allBut: readonly string[];
  /** It opens such folders all the same where one of these globs, or a rule in a `.ignore`, wants them. */
  readonly unless?: readonly string[];
}

/** Where in the line something stands. */
export interface Context {
  readonly via: readonly string[];
  /** Names changed in the environment of all that is found here. */
  readonly assignments: readonly string[];
  readonly dialect: Dialect;
  readonly depth: number;
  /** Runs for another user, host or root. */
  readonly foreign: boolean;
}

export interface FoundCommand {
  readonly words: readonly ShellWord[];
  readonly context: Context;
  readonly directories: Directories;
  /** Said of wrappers: whether it does nothing itself. Undefined: the list of readers decides. */
  readonly transparent: boolean | undefined;
  /** It cannot be told what runs: its one word stands for that. */
  readonly unseen: boolean;
}

interface FoundPath {
  readonly word: ShellWord;
  readonly opens?: Opens | undefined;
  readonly access: ShellPath["access"];
  readonly from: ShellPath["from"];
  readonly directories: Directories;
}

/** What one walk over a line has found so far. */
export interface Findings {
  /** Absolute path of the folder the line starts in, when the caller tells. */
  readonly root: string | undefined;
  readonly commands: FoundCommand[];
  readonly paths: FoundPath[];
  /** Names that a function, an alias or the like gave another meaning. */
  readonly shadowed: Set<string>;
  /** Variables set for the rest of the line that can reach what it runs. */
  readonly environment: Set<string>;
  /** Variables set in front of single commands. */
  readonly prefixed: Set<string>;
  /** Something ran that may have given any name another meaning. */
  redefined: boolean;
  /** Some `cd` was found. */
  moved: boolean;
  /** Some of the text runs at another time than it is read: loops, functions, traps. */
  outOfOrder: boolean;
}

const MAX_COMMANDS = 256;
const MAX_PATHS = 1024;

export function newFindings(root: string | undefined): Findings {
  return {
    root,
    commands: [],
    paths: [],
    shadowed: new Set(),
    environment: new Set(),
    prefixed: new Set(),
    redefined: false,
    moved: false,
    outOfOrder: false,
  };
}

export function addCommand(findings: Findings, command: FoundCommand): void {
  if (findings.commands.length >= MAX_COMMANDS) {
    throw new ShellRefusal(
      "too_complex",
      `the line holds more than ${MAX_COMMANDS} commands; put it into a script file`,
    );
  }
  findings.commands.push(command);
}

export function addPath(findings: Findings, path: FoundPath): void {
  if (findings.paths.length >= MAX_PATHS) {
    throw new ShellRefusal("too_complex", `the line holds more than ${MAX_PATHS} paths; put it into a script file`);
  }
  findings.paths.push(path);
}

/** Lower-case names are the line's own; others, and those that programs look at, may be in the environment already. */
const OWN_NAME = /^(?!.*_proxy$)(?!npm_|pnpm_|yarn_|bun_|git_|ld_|node_)[a-z_][a-z0-9_]*$/;

/**
 * Names whose values bash acts on by itself: it keeps numbers in most of them, and evaluates what is assigned, so that
 * `RANDOM='a[$(rm x)]'` runs rm; after others it reads the next lines in other letters, or with somebody's translations.
 */
const EVALUATED =
  /^(?:S?RANDOM|SECONDS|LINENO|HISTCMD|OPTIND|OPTERR|PPID|E?UID|GROUPS|SHLVL|EPOCH\w*|BASH\w*|FUNCNEST|DIRSTACK|LANG|LANGUAGE|LC_\w+|TEXTDOMAIN\w*|POSIXLY_CORRECT)$/;

export function assign(findings: Findings, name: string): void {
  if (name === "") findings.environment.add("*");
  else if (!OWN_NAME.test(name)) findings.environment.add(name);
  if (EVALUATED.test(name)) addCommand(findings, evaluated(name));
}

function evaluated(name: string): FoundCommand {
  const context: Context = { via: ["="], assignments: [], dialect: "bash", depth: 0, foreign: false };
  return { words: [unknownWord(name)], context, directories: START, transparent: false, unseen: true };
}

/** Writing to these, or reading from them, touches no file. */
const HARMLESS_DEVICES = new Set(["/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"]);

/** The paths of one word: one for each folder the command may run in. */
export function locate(found: FoundPath, anywhere: boolean): readonly ShellPath[] {
  const { word, access, from, opens } = found;
  if (word.pipe || (!word.dynamic && HARMLESS_DEVICES.has(word.text))) return [];
  const unknown: ShellPath = {
    path: word.text,
    access,
    dynamic: true,
    from,
    ...(opens === undefined ? {} : { opens }),
  };
  if (word.dynamic && word.within === undefined) return [unknown];
  const absolute = (word.dynamic ? word.head : word.text).startsWith("/");
  if (anywhere && !absolute) return [unknown];
  return found.directories.map((directory): ShellPath => {
    if (absolute) return { ...unknown, dynamic: word.dynamic, ...withinOf(word, "") };
    if (directory === null) return unknown;
    const path = join(directory, word.text);
    if (climbsBack(directory, word.text)) return { ...unknown, path };
    return { ...unknown, path, dynamic: word.dynamic, ...withinOf(word, directory) };
  });
}

function withinOf(word: ShellWord, directory: string): { within?: string } {
  return word.within === undefined ? {} : { within: join(directory, word.within) };
}
