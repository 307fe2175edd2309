import { basename, isAbsolute, join, relative, resolve } from "node:path";
import type { Workspace } from "@sluice/core";
import { contains, isProgram, realPath } from "../../files/paths.ts";
import { readCommand } from "../readers/readers.ts";
import type { CommandPlace, NamedPath, Reading } from "../readers/reading.ts";
import { outside } from "./line.ts";
import { readXargs } from "./xargs.ts";

/** A command as the gate sees it. */
export interface JudgedCommand {
  /** The words after expansion, which rules are compared with. */
  readonly argv: readonly string[];
  readonly readOnly: boolean;
  /** Number of words at the end that are known only when it runs. */
  readonly dynamic: number;
  readonly via: readonly string[];
  /** Why a known program is not known to only read. */
  readonly why?: string;
  /** Numbers of leading words that would only read on their own; limits what a rule for those words allows. */
  readonly readsWith?: readonly number[];
}

/** A program and everything that it runs. */
export interface External {
  /** The words to run; the program is an absolute path. */
  readonly argv: readonly string[];
  readonly commands: readonly { readonly command: JudgedCommand; readonly paths: readonly NamedPath[] }[];
}

export interface ExternalScene {
  readonly cwd: string;
  readonly workspace: Workspace;
  readonly env: Readonly<Record<string, string>>;
  readonly via: readonly string[];
  /** For xargs: paths that represent its input, if that is known to be paths below judged folders. */
  readonly found: readonly string[] | undefined;
  /** Called for each command; throws if there are too many. */
  readonly step: () => void;
  readonly setting: (name: string, value: string) => void;
  /** Judges a line that a shell runs, and returns it in its judged form. */
  readonly line: (text: string, via: readonly string[]) => string;
}

/** Leading words that are tried on their own. */
const MOST_RULE_WORDS = 4;

/** What a program runs and opens. Throws OutsideLanguage. */
export function external(argv: readonly string[], scene: ExternalScene): External {
  scene.step();
  const args = argv.slice(1);
  const name = knownName(argv[0] ?? "", scene);
  if (name === "xargs") return throughXargs(argv, scene);
  if (name === "sh" || name === "bash" || name === "dash") return throughShell(argv, scene) ?? program(argv, scene);
  const own = WRAPPERS.get(name)?.(args, scene.setting);
  if (own === undefined || own >= args.length) return program(argv, scene);
  const inner = external(args.slice(own), { ...scene, via: [...scene.via, name] });
  return {
    argv: [located(name, scene).path, ...args.slice(0, own), ...inner.argv],
    commands: inner.commands,
  };
}

/** Programs that run the words after their own. Returns the number of own words; undefined if that is not certain. */
const WRAPPERS = new Map<string, (args: readonly string[], setting: ExternalScene["setting"]) => number | undefined>([
  ["nohup", () => 0],
  ["env", (args, setting) => settings(args, setting)],
  ["nice", (args) => options(args, /^(?:-n|--adjustment)$/, /^(?:-n?-?[0-9]+|--adjustment=-?[0-9]+)$/)],
  ["stdbuf", (args) => options(args, /^-[ioe]$/, /^-[ioe](?:L|[0-9]+[KM]?)$/)],
  [
    "timeout",
    (args) => {
      const own = options(
        args,
        /^-[ks]$/,
        /^(?:--preserve-status|--foreground|-v|--verbose|--kill-after=[0-9.]+[smhd]?|--signal=[A-Z0-9]+)$/,
      );
      return own !== undefined && /^[0-9]+(?:\.[0-9]+)?[smhd]?$/.test(args[own] ?? "") ? own + 1 : undefined;
    },
  ],
]);

function settings(args: readonly string[], setting: ExternalScene["setting"]): number | undefined {
  let at = 0;
  for (; /^[A-Za-z_][A-Za-z0-9_]*=/.test(args[at] ?? ""); at++) {
    const word = args[at] ?? "";
    const equals = word.indexOf("=");
    setting(word.slice(0, equals), word.slice(equals + 1));
  }
  return args[at]?.startsWith("-") === true ? undefined : at;
}

function options(args: readonly string[], valued: RegExp, plain: RegExp): number | undefined {
  let at = 0;
  for (; args[at]?.startsWith("-") === true; at++) {
    const word = args[at] ?? "";
    if (plain.test(word)) continue;
    if (!valued.test(word) || !/^-?[A-Z0-9.]+[smhdLKM]?$/.test(args[at + 1] ?? "")) return undefined;
    at += 1;
  }
  return at;
}

/** `sh -c 'plain line'`: judges and rewrites the inner line. */
function throughShell(argv: readonly string[], scene: ExternalScene): External | undefined {
  const [shell = "", flags = "", text, ...more] = argv;
  const name = knownName(shell, scene);
  if (!/^-[euxl]*c$/.test(flags) || text === undefined || more.length > 0) return undefined;
  const line = scene.line(text, [...scene.via, `${name} -c`]);
  const strict = name === "bash" ? ["--noprofile", "--norc"] : [];
  return { argv: [located(name, scene).path, ...strict, flags.replaceAll("l", ""), line], commands: [] };
}

/** Commands that interpret their words again or search them: xargs cannot feed these. */
const UNFED = new Set(["sh", "bash", "dash", "env", "xargs", "find", "rg", "git", "awk", "gawk", "mawk", "jq"]);

function throughXargs(argv: readonly string[], scene: ExternalScene): External {
  const line = readXargs(argv);
  if (line === undefined) return program(argv, scene);
  const { own, command, replaces } = line;
  const { found } = scene;
  const fill = (paths: readonly string[]): readonly string[] =>
    replaces === undefined
      ? [...command, ...paths]
      : command.map((word) => (word === replaces ? (paths[0] ?? word) : word));
  const within = { ...scene, via: [...scene.via, "xargs"], found: undefined };
  const isCertain = replaces === undefined || command.every((word) => word === replaces || !word.includes(replaces));
  // Within a word the input may mean anything, and a shell or a search interprets it again.
  if (!isCertain || UNFED.has(knownName(command[0] ?? "", scene))) return program(argv, scene);
  const inner = external(found === undefined ? fill([]) : fill(found), within);
  if (inner.commands.length === 0) return program(argv, scene);
  const holds = (word: string): boolean => found?.some((path) => word.includes(path)) === true;
  const words =
    replaces === undefined
      ? inner.argv.filter((word) => !holds(word))
      : inner.argv.map((word) => (holds(word) ? replaces : word));
  const commands = inner.commands.map(({ command: one, paths }) => ({
    command: {
      ...one,
      argv: [...one.argv.filter((word) => !holds(word)), "{…}"],
      dynamic: 1,
      // Unknown input may contain anything, including options.
      readOnly: one.readOnly && found !== undefined,
    },
    paths: paths.filter(({ path }) => !holds(path)),
  }));
  return { argv: [located("xargs", scene).path, ...own, ...words], commands };
}

function program(argv: readonly string[], scene: ExternalScene): External {
  const [name = "", ...args] = argv;
  const { path, inWorkspace } = located(name, scene);
  const known = knownName(name, scene);
  const place = commandPlace(scene);
  const read = (words: readonly string[]): Reading | undefined =>
    inWorkspace ? undefined : readCommand([known, ...words], place);
  const wouldRead = (count: number): boolean =>
    !inWorkspace && readCommand([known, ...args.slice(0, count)], { ...place, wordsOnly: true })?.kind === "reads";
  const reading: Reading | undefined =
    path === name && !name.includes("/") ? { kind: "unknown", why: "no such program is on PATH" } : read(args);
  const shown = [nameFromRoot(name, path, scene), ...args];
  if (reading?.kind === "reads") {
    const command: JudgedCommand = { argv: shown, readOnly: true, dynamic: 0, via: scene.via };
    return { argv: [path, ...reading.argv.slice(1)], commands: [{ command, paths: reading.paths }] };
  }
  const counts = [...Array(MOST_RULE_WORDS).keys(), args.length].filter((count) => count <= args.length);
  const readsWith = reading === undefined ? [] : [...new Set(counts)].filter(wouldRead);
  const command: JudgedCommand = {
    argv: shown,
    readOnly: false,
    dynamic: 0,
    via: scene.via,
    ...(reading === undefined ? {} : { why: reading.why }),
    ...(readsWith.length === 0 ? {} : { readsWith: readsWith.map((count) => count + 1) }),
  };
  return { argv: [path, ...args], commands: [{ command, paths: [] }] };
}

function commandPlace(scene: ExternalScene): CommandPlace {
  return {
    cwd: scene.cwd,
    workspace: scene.workspace,
    inner: (argv) => {
      const inner = external(argv, { ...scene, found: undefined });
      const unread = inner.commands.find(({ command }) => !command.readOnly);
      if (unread !== undefined || inner.commands.length === 0)
        return { kind: "unknown", why: unread?.command.why ?? `${argv[0] ?? ""} is not known to only read` };
      return { kind: "reads", argv: inner.argv, paths: inner.commands.flatMap(({ paths }) => paths) };
    },
  };
}

/** The bare name of a program that was called by its path, if PATH finds the same file. */
function knownName(name: string, scene: ExternalScene): string {
  const base = basename(name);
  return name.includes("/") && base !== "" && located(base, scene).path === name ? base : name;
}

/** A rule that names a file of the workspace means the path from its root, in any folder. */
function nameFromRoot(name: string, path: string, { cwd, workspace }: ExternalScene): string {
  if (!name.includes("/") || isAbsolute(name) || cwd === workspace.root) return name;
  return `./${relative(workspace.root, path)}`;
}

/** The path of a program. One in the workspace is never trusted to only read. */
function located(name: string, scene: ExternalScene): { path: string; inWorkspace: boolean } {
  const { cwd, workspace, env } = scene;
  if (name.includes("/")) {
    const path = resolve(cwd, name);
    return { path, inWorkspace: contains(workspace.root, realPath(path) ?? path) };
  }
  const candidates = (env.PATH ?? "")
    .split(":")
    .filter((folder) => isAbsolute(folder))
    .map((folder) => join(folder, name))
    .filter(isProgram)
    .map((path) => ({
      path,
      inWorkspace: contains(workspace.root, realPath(path) ?? path) || contains(workspace.root, path),
    }));
  const found = candidates.find((one) => !one.inWorkspace) ?? candidates[0];
  if (name === "") throw outside("an empty command");
  // Not a builtin, so the shell will not find it either.
  return found ?? { path: name, inWorkspace: true };
}
