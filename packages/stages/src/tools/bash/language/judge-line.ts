import type { Subject, Workspace } from "@sluice/core";
import { contains, resolveReal } from "../../files/paths.ts";
import type { CommandPlace, NamedPath } from "../readers/reading.ts";
import { builtin, cdTarget } from "./builtins.ts";
import { isHarmlessSetting } from "./environment.ts";
import { EXIT_CODE, type ExpansionScene, expandSingle, expandWord, MOST_WORDS } from "./expand.ts";
import { type External, external, type JudgedCommand } from "./external.ts";
import {
  type AndOr,
  type Assignment,
  type Command,
  type List,
  outside,
  type Pipeline,
  type Redirect,
  type SimpleCommand,
  type Word,
} from "./line.ts";
import { readLine } from "./read-line.ts";
import { feedsXargs, pathProducer } from "./xargs.ts";

/** The context in which a line is judged. */
export interface LineScene {
  readonly workspace: Workspace;
  /** The exact environment of the child. */
  readonly env: Readonly<Record<string, string>>;
  /** Variables that a line may set, in addition to the harmless ones. */
  readonly variables: readonly string[];
}

/** A line of the plain command language, fully expanded. */
export interface JudgedLine {
  /** The line rewritten from what was judged, which is what runs. */
  readonly text: string;
  readonly subjects: readonly Subject[];
}

/** Commands that the commands of a line may run. */
const MOST_INNER = 48;

/** Redirections to these touch no file. */
const HARMLESS_DEVICES = new Set(["/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"]);

/** Reads, expands, judges and rewrites a line. Throws OutsideLanguage. */
export function judgeLine(text: string, scene: LineScene): JudgedLine {
  const walk = new LineWalk(scene);
  const printed = walk.line(text, { cwd: scene.workspace.root }, []);
  const subjects = [...distinct(walk.commands), ...distinct(walk.paths)];
  return { text: printed, subjects: [...subjects, { kind: "line", text: printed }] };
}

/** A shell or subshell, with its current folder. */
interface Shell {
  cwd: string;
}

/** One walk over a line: its findings, and the state that its shells share. */
class LineWalk {
  readonly commands: Subject[] = [];
  readonly paths: Subject[] = [];
  readonly #scene: LineScene;
  readonly #changed = new Set<string>();
  readonly #seen = { entries: 0, folders: 0 };
  /** Words and redirections; each may be a path to resolve. */
  #words = 0;
  /** Commands run by other commands. */
  #inner = 0;
  #depth = 0;

  constructor(scene: LineScene) {
    this.#scene = scene;
  }

  line(text: string, shell: Shell, via: readonly string[]): string {
    this.#depth += 1;
    if (this.#depth > 4) throw outside("too many shells inside each other");
    const printed = this.#list(readLine(text), shell, via);
    this.#depth -= 1;
    return printed;
  }

  #list(list: List, shell: Shell, via: readonly string[]): string {
    return list.map((item, at) => this.#andOr(item, shell, via, at === list.length - 1)).join("; ");
  }

  #andOr(parts: AndOr, shell: Shell, via: readonly string[], last: boolean): string {
    const allAnd = parts.every(({ operator }) => operator !== "||");
    const printed = parts.map(({ operator, pipeline }, at) => {
      const moved = this.#cd(pipeline, shell);
      // A cd that may be skipped must be the last command: otherwise the folder of the rest is not certain.
      if (moved !== undefined && at > 0 && !(allAnd && last)) throw outside("a cd that may not happen");
      const text = moved ?? this.#pipeline(pipeline, shell, via);
      return operator === undefined ? text : `${operator} ${text}`;
    });
    return printed.join(" ");
  }

  /** Rewrites `cd DIR`; if it fails at run time, the rest of the line does not run. */
  #cd({ commands, negated, timed }: Pipeline, shell: Shell): string | undefined {
    const [only] = commands;
    if (only?.command.kind !== "simple") return undefined;
    const { words, assignments, redirects } = only.command;
    const first = words[0]?.[0];
    if (first?.kind !== "text" || first.text !== "cd" || words[0]?.length !== 1) return undefined;
    const argv = words.flatMap((word) => expandWord(word, this.#expansion(shell)));
    if (commands.length > 1 || negated || timed || assignments.length > 0 || redirects.length > 0)
      throw outside("a cd inside a pipeline, or with redirections");
    const folder = cdTarget(argv, shell.cwd);
    if (!contains(this.#scene.workspace.root, folder))
      throw outside(`a cd out of the workspace, to ${argv[1] ?? "home"}`);
    this.paths.push({ kind: "path", real: folder, access: "read", from: "cd" });
    this.#changed.add("PWD");
    shell.cwd = folder;
    return `{ cd -- ${quoted(folder)} || exit 1; }`;
  }

  #pipeline({ commands, negated, timed }: Pipeline, shell: Shell, via: readonly string[]): string {
    // Each part of a longer pipeline runs in its own subshell.
    const place = commands.length === 1 ? shell : { ...shell };
    const expanded = commands.map(({ command }) =>
      command.kind === "simple" ? this.#argv(command, place) : undefined,
    );
    // Redirections and errors would add to the input of xargs.
    const isPlain = commands.every(({ command, withErrors }) => !withErrors && command.redirects.every(isQuiet));
    const fed = feedsXargs(isPlain ? expanded : expanded.map(() => undefined), (argv) =>
      pathProducer(argv, this.#commandPlace(place)),
    );
    const printed = commands.map(({ command, withErrors }, at) => {
      const text =
        command.kind === "subshell"
          ? `( ${this.#list(command.list, { ...place }, via)} )`
          : this.#simple(command, fed[at]?.argv ?? expanded[at] ?? [], fed[at]?.found, place, via);
      const redirects = this.#redirects(command, place);
      return `${text}${redirects}${withErrors ? " 2>&1" : ""}`;
    });
    if (timed && via.some((name) => /^(?:sh|dash) -c$/.test(name)))
      throw outside("time in a shell that has no such keyword");
    return `${timed ? "time " : ""}${negated ? "! " : ""}${printed.join(" | ")}`;
  }

  #argv({ words }: SimpleCommand, shell: Shell): readonly string[] {
    const [first, ...rest] = words;
    if (first === undefined) return [];
    const scene = this.#expansion(shell);
    const argv = [isBracket(first) ? "[" : expandSingle(first, scene)];
    for (const word of rest) {
      argv.push(...expandWord(word, scene));
      if (this.#words + argv.length > MOST_WORDS) throw outside(`more than ${MOST_WORDS} words`);
    }
    this.#words += argv.length;
    return argv;
  }

  #simple(
    { assignments }: SimpleCommand,
    argv: readonly string[],
    found: readonly string[] | undefined,
    shell: Shell,
    via: readonly string[],
  ): string {
    const settings = assignments.map((one) => this.#setting(one, shell));
    if (argv.length === 0) {
      for (const { name } of assignments) this.#changed.add(name);
      return settings.join(" ");
    }
    if (argv[0] === "cd") throw outside("a cd of an unusual form");
    const builtinPaths = builtin(argv, {
      setting: (name, value) => this.#checkSetting(name, value),
      changed: (name) => this.#changed.add(name),
    });
    if (builtinPaths !== undefined) {
      this.#found({ argv, readOnly: true, dynamic: 0, via }, builtinPaths, shell);
      return [...settings, argv[0] ?? "", ...argv.slice(1).map(quoted)].join(" ");
    }
    if (argv.some((word) => word.includes(EXIT_CODE))) throw outside("$? as a word of a program");
    const judged = this.#external(argv, shell, via, found);
    for (const { command, paths } of judged.commands) this.#found(command, paths, shell);
    return [...settings, ...judged.argv.map(quoted)].join(" ");
  }

  #external(argv: readonly string[], shell: Shell, via: readonly string[], found?: readonly string[]): External {
    return external(argv, {
      cwd: shell.cwd,
      workspace: this.#scene.workspace,
      env: this.#scene.env,
      via,
      found,
      step: () => {
        this.#inner += 1;
        if (this.#inner > MOST_INNER) throw outside(`commands that run more than ${MOST_INNER} others`);
      },
      setting: (name, value) => this.#checkSetting(name, value),
      line: (text, inside) => this.line(text, { ...shell }, inside),
    });
  }

  #commandPlace({ cwd }: Shell): CommandPlace {
    const inner: CommandPlace["inner"] = () => ({ kind: "unknown", why: "it runs another command" });
    return { cwd, workspace: this.#scene.workspace, inner };
  }

  #found(command: JudgedCommand, paths: readonly NamedPath[], shell: Shell): void {
    const { argv, readOnly, dynamic, via, why, readsWith } = command;
    this.commands.push({
      kind: "command",
      argv,
      dynamic: argv.map((_, at) => at >= argv.length - dynamic),
      readOnly,
      assignments: [],
      via,
      ...(why === undefined ? {} : { why }),
      ...(readsWith === undefined ? {} : { readsWith }),
    });
    for (const { path, access } of paths) this.#path(path, access, "operand", shell);
  }

  #path(path: string, access: "read" | "write", from: "operand" | "redirect", shell: Shell): void {
    if (HARMLESS_DEVICES.has(path)) return;
    const resolution = resolveReal(path, shell.cwd);
    if (resolution.ok) {
      this.paths.push({ kind: "path", real: resolution.real, access, from });
      return;
    }
    const reason = `${JSON.stringify(path)} cannot be resolved: ${resolution.reason}`;
    this.paths.push({ kind: resolution.anywhere === true ? "refused" : "opaque", reason });
  }

  #setting({ name, value }: Assignment, shell: Shell): string {
    const text = expandSingle(value, this.#expansion(shell));
    this.#checkSetting(name, text);
    return `${name}=${quoted(text)}`;
  }

  #checkSetting(name: string, value: string): void {
    if (!isHarmlessSetting(name, value, this.#scene.variables)) throw outside(`a setting of ${name}`);
  }

  #redirects({ redirects }: Command, shell: Shell): string {
    return redirects.map((redirect) => ` ${this.#redirect(redirect, shell)}`).join("");
  }

  #redirect({ from, to }: Redirect, shell: Shell): string {
    this.#words += 10;
    if (this.#words > MOST_WORDS) throw outside("too many redirections");
    if (to.kind === "descriptor") return `${from === "both" ? 1 : from}>&${to.descriptor}`;
    const path = expandSingle(to.word, this.#expansion(shell));
    if (path === "") throw outside("a redirection to nothing");
    this.#path(path, to.how === "read" ? "read" : "write", "redirect", shell);
    if (from === 0) return `< ${quoted(path)}`;
    const operator = to.how === "append" ? ">>" : ">";
    return from === "both" ? `${operator} ${quoted(path)} 2>&1` : `${from}${operator} ${quoted(path)}`;
  }

  #expansion(shell: Shell): ExpansionScene {
    return {
      cwd: shell.cwd,
      env: this.#scene.env,
      changed: this.#changed,
      seen: this.#seen,
      // A glob reveals the names in a folder.
      listed: (folder) => {
        const resolution = resolveReal(folder, shell.cwd);
        // Not even the record may contain names from elsewhere.
        if (!resolution.ok || !contains(this.#scene.workspace.root, resolution.real))
          throw outside("a glob that leaves the workspace");
        if (resolution.exists) this.#path(folder, "read", "operand", shell);
      },
    };
  }
}

/** Quotes a word for bash, except for the exit code of the previous command. */
function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`).replaceAll(EXIT_CODE, `'"$?"'`)}'`;
}

/** Whether it discards errors, which does not affect the pipe. */
function isQuiet({ from, to }: Redirect): boolean {
  const [only] = to.kind === "file" ? to.word : [];
  return from === 2 && to.kind === "file" && only?.kind === "text" && only.text === "/dev/null" && to.word.length === 1;
}

/** Whether a word is the command `[`, which is not a pattern. */
function isBracket(word: Word): boolean {
  const [only] = word;
  return word.length === 1 && only?.kind === "text" && only.text === "[";
}

function distinct(subjects: readonly Subject[]): readonly Subject[] {
  return [...new Map(subjects.map((subject) => [JSON.stringify(subject), subject])).values()];
}
