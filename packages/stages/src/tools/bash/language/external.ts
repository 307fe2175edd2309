import { basename, isAbsolute, join, relative, resolve } from "node:path";
import type { Subject, Workspace } from "@sluice/core";
import { contains, isProgram, realPath } from "../../files/paths.ts";
import { ownWords } from "../readers/options.ts";
import { hasReadingForms, readCommand } from "../readers/readers.ts";
import { type CommandPlace, reads, unknown } from "../readers/reading.ts";
import type { ExpansionScene } from "./expand.ts";
import { outside } from "./line.ts";
import { packageScript } from "./package-script.ts";
import { readXargs } from "./xargs.ts";

/** A shell or subshell of a line. */
export interface Shell extends ExpansionScene {
  /** Changed by `cd`. */
  cwd: string;
  readonly workspace: Workspace;
  /** Variables that the line has set, in any shell. */
  readonly changed: Set<string>;
  /** The programs that started it, such as `env` and `sh -c`. */
  readonly via: readonly string[];
  /** Called for each command that another one runs; throws if there are too many. */
  readonly step: () => void;
  /** Throws for a variable that no line may set. */
  readonly setting: (name: string, value: string) => void;
  /** Judges a line that a shell runs, and returns it in its judged form. */
  readonly line: (text: string, shell: Shell) => string;
}

type CommandSubject = Extract<Subject, { kind: "command" }>;

/** A program and everything that it runs. */
export interface External {
  /** The words to run; the program is an absolute path. */
  readonly argv: readonly string[];
  /** The commands as the gate sees them, with the paths that they open. */
  readonly commands: readonly OpeningCommand[];
}

export interface OpeningCommand {
  readonly command: CommandSubject;
  readonly paths: readonly string[];
  /** Those that it opens with what is below them. */
  readonly trees: readonly string[];
}

/** A command as the gate sees it; rules are compared with `argv`, the words after expansion. */
export function commandSubject(argv: readonly string[], readOnly: boolean, shell: Shell): CommandSubject {
  const { via, cwd, workspace } = shell;
  const folder = cwd === workspace.root ? {} : { folder: cwd };
  return { kind: "command", argv, dynamic: argv.map(() => false), readOnly, assignments: [], via, ...folder };
}

/**
 * What a program runs and opens. `found`: paths that represent the input of xargs, if that is known to be paths below judged
 * folders. Throws OutsideLanguage.
 */
export function external(argv: readonly string[], shell: Shell, found?: readonly string[]): External {
  shell.step();
  const [, ...args] = argv;
  const name = knownName(argv[0] ?? "", shell);
  if (name === "xargs") return throughXargs(argv, shell, found);
  if (name === "sh" || name === "bash" || name === "dash") return throughShell(argv, shell) ?? program(argv, shell);
  const own = WRAPPERS.get(name)?.(args, shell.setting);
  if (typeof own !== "number" || own >= args.length) return program(argv, shell);
  const inner = external(args.slice(own), { ...shell, via: [...shell.via, name] }, found);
  return { argv: [located(name, shell).path, ...args.slice(0, own), ...inner.argv], commands: inner.commands };
}

/** Programs that run the words after their own: the number of own words, or a word with which that is not certain. */
const WRAPPERS = new Map<string, (args: readonly string[], setting: Shell["setting"]) => number | string>([
  ["nohup", () => 0],
  ["env", settings],
  [
    "nice",
    (args) => ownWords(args, /^(?:-n?-?[0-9]+|--adjustment=-?[0-9]+)$/, /^(?:-n|--adjustment) -?[A-Z0-9.]+[smhdLKM]?$/),
  ],
  ["stdbuf", (args) => ownWords(args, /^-[ioe](?:L|[0-9]+[KM]?)$/, /^-[ioe] -?[A-Z0-9.]+[smhdLKM]?$/)],
  ["timeout", timeout],
]);

function settings(args: readonly string[], setting: Shell["setting"]): number | string {
  const own = args.findIndex((word) => !/^[A-Za-z_][A-Za-z0-9_]*=/.test(word));
  for (const word of own === -1 ? args : args.slice(0, own)) {
    const equals = word.indexOf("=");
    setting(word.slice(0, equals), word.slice(equals + 1));
  }
  const first = args[own];
  return first === undefined || first.startsWith("-") ? "env" : own;
}

function timeout(args: readonly string[]): number | string {
  const flag = /^(?:--preserve-status|--foreground|-v|--verbose|--kill-after=[0-9.]+[smhd]?|--signal=[A-Z0-9]+)$/;
  const own = ownWords(args, flag, /^-[ks] -?[A-Z0-9.]+[smhdLKM]?$/);
  if (typeof own === "string") return own;
  const duration = args[own] ?? "";
  return /^[0-9]+(?:\.[0-9]+)?[smhd]?$/.test(duration) ? own + 1 : duration;
}

/** `sh -c 'plain line'`: judges and rewrites the inner line. */
function throughShell([name = "", flags = "", text, ...more]: readonly string[], shell: Shell): External | undefined {
  const known = knownName(name, shell);
  if (!/^-[euxl]*c$/.test(flags) || text === undefined || more.length > 0) return undefined;
  const line = shell.line(text, { ...shell, via: [...shell.via, `${known} -c`] });
  const strict = known === "bash" ? ["--noprofile", "--norc"] : [];
  return { argv: [located(known, shell).path, ...strict, flags.replaceAll("l", ""), line], commands: [] };
}

/** Commands that interpret their words again or search them: xargs cannot feed these. */
const UNFED = new Set(["sh", "bash", "dash", "env", "xargs", "find", "rg", "git", "awk", "gawk", "mawk", "jq"]);

/** Programs that only print their words, whatever these are. */
const PRINT_WORDS = new Set(["basename", "dirname", "echo"]);

function throughXargs(argv: readonly string[], shell: Shell, found: readonly string[] | undefined): External {
  const line = readXargs(argv);
  if (line === undefined) return program(argv, shell);
  const { own, command, replaces } = line;
  const [name = ""] = command;
  const isCertain = replaces === undefined || command.every((word) => word === replaces || !word.includes(replaces));
  // Within a word the input may mean anything, and a shell or a search interprets it again.
  if ((!isCertain && !PRINT_WORDS.has(name)) || UNFED.has(knownName(name, shell))) return program(argv, shell);
  const [first] = found ?? [];
  const filled =
    replaces === undefined
      ? [...command, ...(found ?? [])]
      : command.map((word) => (word === replaces ? (first ?? word) : word));
  const inner = external(filled, { ...shell, via: [...shell.via, "xargs"] });
  if (inner.commands.length === 0) return program(argv, shell);
  const holds = (word: string): boolean => found?.some((path) => word.includes(path)) === true;
  const words =
    replaces === undefined
      ? inner.argv.filter((word) => !holds(word))
      : inner.argv.map((word) => (holds(word) ? replaces : word));
  const commands = inner.commands.map(({ command: one, paths, trees }) => {
    const kept = one.argv.filter((word) => !holds(word));
    return {
      command: {
        ...one,
        argv: [...kept, "{…}"],
        dynamic: [...kept.map(() => false), true],
        // Unknown input may contain anything, including options.
        readOnly: one.readOnly && (found !== undefined || PRINT_WORDS.has(kept[0] ?? "")),
      },
      paths: paths.filter((path) => !holds(path)),
      trees: trees.filter((path) => !holds(path)),
    };
  });
  const needsItem = found !== undefined && replaces === undefined && opensMore(command, commands, shell);
  return { argv: [located("xargs", shell).path, ...(needsItem ? ["-r"] : []), ...own, ...words], commands };
}

/** Whether a command opens other paths without the items of xargs, which would run it once if there are none: `grep -r x`. */
function opensMore(command: readonly string[], judged: readonly OpeningCommand[], shell: Shell): boolean {
  const opened = ({ paths, trees }: OpeningCommand): readonly string[] => [...paths, ...trees];
  const known = new Set(judged.flatMap(opened));
  return external(command, shell).commands.some(
    (one) => !one.command.readOnly || opened(one).some((path) => !known.has(path)),
  );
}

const NO_PATHS = { paths: [], trees: [] };

function program(argv: readonly string[], shell: Shell): External {
  const [name = "", ...args] = argv;
  const known = knownName(name, shell);
  const { path, inWorkspace } = located(known, shell);
  const isMissing = path === name && !name.includes("/");
  const reading = isMissing
    ? unknown("no such program is on PATH")
    : inWorkspace
      ? undefined
      : readCommand([known, ...args], commandPlace(shell));
  const shown = [nameFromRoot(name, path, shell), ...args];
  const command = commandSubject(shown, reading?.kind === "reads", shell);
  if (reading?.kind === "reads") {
    // A program that does the same may run instead: `cat` for a pager.
    const [run = ""] = reading.argv;
    const file = isAbsolute(run) ? run : path;
    const { paths, trees } = reading;
    return { argv: [file, ...reading.argv.slice(1)], commands: [{ command, paths, trees }] };
  }
  const why = reading === undefined ? {} : { why: reading.why };
  const script = inWorkspace ? undefined : packageScript(shown, shell.cwd, shell.workspace);
  // Another program of that name may do the same, so it is not trusted to read, nor covered as one that is unknown.
  const isKnown = (isMissing || !inWorkspace) && hasReadingForms([basename(name), ...args]);
  const forms = isKnown ? { hasReadingForms: true as const } : {};
  const runs = script === undefined ? {} : { script };
  return { argv: [path, ...args], commands: [{ command: { ...command, ...why, ...forms, ...runs }, ...NO_PATHS }] };
}

/** Where the readers judge a command of this shell. */
export function commandPlace(shell: Shell): CommandPlace {
  return {
    cwd: shell.cwd,
    workspace: shell.workspace,
    inner: (argv) => {
      const { argv: words, commands } = external(argv, shell);
      const unread = commands.find(({ command }) => !command.readOnly);
      if (unread !== undefined || commands.length === 0)
        return unknown(unread?.command.why ?? `${argv[0] ?? ""} is not known to only read`);
      const paths = commands.flatMap((command) => command.paths);
      return reads(
        words,
        paths,
        commands.flatMap(({ trees }) => trees),
      );
    },
  };
}

/** The bare name of a program that was called by its path, if PATH finds the same file: `/bin/sed` may lead to `/usr/bin/sed`. */
function knownName(name: string, shell: Shell): string {
  const base = basename(name);
  if (!isAbsolute(name) || base === "") return name;
  const { path } = located(base, shell);
  return path === name || (isAbsolute(path) && realPath(path) === realPath(name)) ? base : name;
}

/** A rule that names a file of the workspace means the path from its root, in any folder. */
function nameFromRoot(name: string, path: string, { cwd, workspace }: Shell): string {
  if (!name.includes("/") || isAbsolute(name) || cwd === workspace.root) return name;
  return `./${relative(workspace.root, path)}`;
}

/** The path of a program. One in the workspace is never trusted to only read. */
function located(name: string, { cwd, workspace, env }: Shell): { path: string; inWorkspace: boolean } {
  if (name === "") throw outside("an empty command");
  const isInside = (path: string): boolean =>
    contains(workspace.root, path) || contains(workspace.root, realPath(path) ?? path);
  const folders = (env.PATH ?? "").split(":").filter((folder) => isAbsolute(folder));
  const paths = name.includes("/")
    ? [resolve(cwd, name)]
    : folders.map((folder) => join(folder, name)).filter(isProgram);
  const path = paths.find((one) => !isInside(one)) ?? paths[0];
  // Not a builtin, so the shell will not find it either.
  return path === undefined ? { path: name, inWorkspace: true } : { path, inWorkspace: isInside(path) };
}
