import type { Subject, Workspace } from "@sluice/core";
import { contains, isTree, resolveReal } from "../../files/paths.ts";
import { builtin, cdTarget } from "./builtins.ts";
import { isHarmlessSetting } from "./environment.ts";
import { EXIT_CODE, expandSingle, expandWord, MOST_WORDS, refuseSecret } from "./expand.ts";
import { commandPlace, commandSubject, external, type OpeningCommand, type Shell } from "./external.ts";
import { type AndOr, type List, outside, type Pipeline, type Redirect, type SimpleCommand, type Word } from "./line.ts";
import { readLine } from "./read-line.ts";
import { type Fed, feedsXargs, pathProducer } from "./xargs.ts";

/** Commands that the commands of a line may run. */
const MOST_INNER = 48;

/** Redirections to these touch no file. */
const HARMLESS_DEVICES = new Set(["/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"]);

/**
 * Reads, expands, judges and rewrites a line; the last subject is the line as it runs. `scene` has the exact environment of the
 * child, `variables` may be set in addition to the harmless ones. Throws OutsideLanguage.
 */
export function judgeLine(
  line: string,
  workspace: Workspace,
  scene: Pick<Shell, "env" | "unrecorded" | "secrets">,
  variables: readonly string[],
): readonly Subject[] {
  const walk = new LineWalk();
  const text = walk.line(line, walk.shell(workspace, scene, variables));
  return [...distinct(walk.commands), ...distinct(walk.paths), { kind: "line", text }];
}

/** With the words that were given for the rewritten ones: the rules of a stage are compared with them. */
function withWords(
  command: OpeningCommand["command"],
  given: readonly string[] | undefined,
): OpeningCommand["command"] {
  if (given === undefined) return command;
  return { ...command, argv: [...command.argv.slice(0, 1), ...given.slice(1)], dynamic: given.map(() => false) };
}

/** How a path is opened; `deep` is with what is below it. */
interface Opening {
  readonly access: "read" | "write";
  readonly from: "operand" | "redirect";
  readonly deep?: boolean;
}

/** One walk over a line: its findings, and the limits that its shells share. */
class LineWalk {
  readonly commands: Subject[] = [];
  readonly paths: Subject[] = [];
  /** Words and redirections; each may be a path to resolve. */
  #words = 0;
  /** Commands run by other commands. */
  #inner = 0;
  #depth = 0;

  /** The shell that runs the whole line. */
  shell(
    workspace: Workspace,
    { env, unrecorded, secrets }: Pick<Shell, "env" | "unrecorded" | "secrets">,
    variables: readonly string[],
  ): Shell {
    return {
      cwd: workspace.root,
      workspace,
      env,
      unrecorded,
      secrets,
      via: [],
      changed: new Set(),
      seen: { entries: 0, folders: 0 },
      // A glob reveals the names in a folder.
      listed: (folder) => {
        const resolution = resolveReal(folder, workspace.root);
        // Not even the record may contain names from elsewhere.
        if (!resolution.ok || !contains(workspace.root, resolution.real))
          throw outside("a glob that leaves the workspace");
        refuseSecret(resolution.real, { secrets });
        if (resolution.exists)
          this.paths.push({ kind: "path", real: resolution.real, access: "read", from: "operand" });
      },
      step: () => {
        this.#inner += 1;
        if (this.#inner > MOST_INNER) throw outside(`commands that run more than ${MOST_INNER} others`);
      },
      setting: (name, value) => {
        if (!isHarmlessSetting(name, value, variables)) throw outside(`a setting of ${name}`);
      },
      line: (text, shell) => this.line(text, shell),
    };
  }

  line(text: string, shell: Shell): string {
    this.#depth += 1;
    if (this.#depth > 4) throw outside("too many shells inside each other");
    const printed = this.#list(readLine(text), shell);
    this.#depth -= 1;
    return printed;
  }

  #list(list: List, shell: Shell): string {
    return list.map((item, at) => this.#andOr(item, shell, at === list.length - 1)).join("; ");
  }

  #andOr(parts: AndOr, shell: Shell, last: boolean): string {
    const allAnd = parts.every(({ operator }) => operator !== "||");
    const printed = parts.map(({ operator, pipeline }, at) => {
      const moved = this.#cd(pipeline, shell);
      // A cd that may be skipped must be the last command: otherwise the folder of the rest is not certain.
      if (moved !== undefined && at > 0 && !(allAnd && last)) throw outside("a cd that may not happen");
      const text = moved ?? this.#pipeline(pipeline, shell);
      return operator === undefined ? text : `${operator} ${text}`;
    });
    return printed.join(" ");
  }

  /** Rewrites `cd DIR`; if it fails at run time, the rest of the line does not run. */
  #cd({ commands, negated, timed }: Pipeline, shell: Shell): string | undefined {
    const [only] = commands;
    if (only?.command.kind !== "simple" || soleText(only.command.words[0]) !== "cd") return undefined;
    const { words, assignments, redirects } = only.command;
    const argv = words.flatMap((word) => expandWord(word, shell));
    if (commands.length > 1 || negated || timed || assignments.length > 0 || redirects.length > 0)
      throw outside("a cd inside a pipeline, or with redirections");
    const folder = cdTarget(argv, shell.cwd);
    if (!contains(shell.workspace.root, folder)) throw outside(`a cd out of the workspace, to ${argv[1] ?? "home"}`);
    this.paths.push({ kind: "path", real: folder, access: "read", from: "cd" });
    shell.changed.add("PWD");
    shell.cwd = folder;
    return `{ cd -- ${quoted(folder)} || exit 1; }`;
  }

  #pipeline({ commands, negated, timed }: Pipeline, shell: Shell): string {
    // Each part of a longer pipeline runs in its own subshell.
    const place = commands.length === 1 ? shell : { ...shell };
    const expanded = commands.map(({ command }) =>
      command.kind === "simple" ? this.#argv(command, place) : undefined,
    );
    // Redirections and errors would add to the input of xargs.
    const isPlain = commands.every(({ command, withErrors }) => !withErrors && command.redirects.every(isQuiet));
    const fed = isPlain ? feedsXargs(expanded, (argv) => pathProducer(argv, commandPlace(place))) : [];
    const printed = commands.map(({ command, withErrors }, at) => {
      const text =
        command.kind === "subshell"
          ? `( ${this.#list(command.list, { ...place })} )`
          : this.#simple(command, fed[at] ?? { argv: expanded[at] ?? [] }, place);
      const redirects = command.redirects.map((redirect) => ` ${this.#redirect(redirect, place)}`).join("");
      return `${text}${redirects}${withErrors ? " 2>&1" : ""}`;
    });
    if (timed && shell.via.some((name) => /^(?:sh|dash) -c$/.test(name)))
      throw outside("time in a shell that has no such keyword");
    return `${timed ? "time " : ""}${negated ? "! " : ""}${printed.join(" | ")}`;
  }

  #argv({ words }: SimpleCommand, shell: Shell): readonly string[] {
    const [first, ...rest] = words;
    if (first === undefined) return [];
    // The command `[` is not a pattern.
    const argv = [soleText(first) === "[" ? "[" : expandSingle(first, shell)];
    for (const word of rest) {
      argv.push(...expandWord(word, shell));
      if (this.#words + argv.length > MOST_WORDS) throw outside(`more than ${MOST_WORDS} words`);
    }
    this.#words += argv.length;
    return argv;
  }

  #simple({ assignments }: SimpleCommand, { argv, given, found, trees = [] }: Fed, shell: Shell): string {
    const settings = assignments.map(({ name, value }) => {
      const text = expandSingle(value, shell);
      shell.setting(name, text);
      return `${name}=${quoted(text)}`;
    });
    const [name] = argv;
    if (name === undefined) {
      for (const assignment of assignments) shell.changed.add(assignment.name);
      return settings.join(" ");
    }
    if (name === "cd") throw outside("a cd of an unusual form");
    const paths = builtin(argv, shell);
    if (paths !== undefined) {
      this.#found({ command: commandSubject(argv, true, shell), paths, trees: [] }, shell);
      return [...settings, name, ...argv.slice(1).map(quoted)].join(" ");
    }
    if (argv.some((word) => word.includes(EXIT_CODE))) throw outside("$? as a word of a program");
    const judged = external(argv, shell, found);
    for (const { command, paths, trees: own } of judged.commands)
      this.#found({ command: withWords(command, given), paths, trees: [...own, ...trees] }, shell);
    return [...settings, ...judged.argv.map(quoted)].join(" ");
  }

  #found({ command, paths, trees }: OpeningCommand, shell: Shell): void {
    this.commands.push(command);
    for (const path of trees) this.#path(path, { access: "read", from: "operand", deep: true }, shell);
    for (const path of paths) this.#path(path, { access: "read", from: "operand" }, shell);
  }

  #path(path: string, { access, from, deep = false }: Opening, shell: Shell): void {
    if (HARMLESS_DEVICES.has(path)) return;
    const resolution = resolveReal(path, shell.cwd);
    if (resolution.ok) {
      const { real } = resolution;
      refuseSecret(real, shell);
      const tree = deep && isTree(real, shell.workspace) ? { tree: true as const } : {};
      this.paths.push({ kind: "path", real, access, from, ...tree });
      return;
    }
    const reason = `${JSON.stringify(path)} cannot be resolved: ${resolution.reason}`;
    this.paths.push({ kind: resolution.anywhere === true ? "refused" : "opaque", reason });
  }

  #redirect({ from, to }: Redirect, shell: Shell): string {
    this.#words += 10;
    if (this.#words > MOST_WORDS) throw outside("too many redirections");
    if (to.kind === "descriptor") return `${from === "both" ? 1 : from}>&${to.descriptor}`;
    const path = expandSingle(to.word, shell);
    if (path === "") throw outside("a redirection to nothing");
    this.#path(path, { access: to.how === "read" ? "read" : "write", from: "redirect" }, shell);
    if (from === 0) return `< ${quoted(path)}`;
    const operator = to.how === "append" ? ">>" : ">";
    return from === "both" ? `${operator} ${quoted(path)} 2>&1` : `${from}${operator} ${quoted(path)}`;
  }
}

/** Quotes a word for bash, except for the exit code of the previous command. */
function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`).replaceAll(EXIT_CODE, `'"$?"'`)}'`;
}

/** Whether it discards errors, which does not affect the pipe. */
function isQuiet({ from, to }: Redirect): boolean {
  return from === 2 && to.kind === "file" && soleText(to.word) === "/dev/null";
}

/** The text of a word that consists of one piece of text. */
function soleText([only, ...more]: Word = []): string | undefined {
  return only?.kind === "text" && more.length === 0 ? only.text : undefined;
}

function distinct(subjects: readonly Subject[]): readonly Subject[] {
  return [...new Map(subjects.map((subject) => [JSON.stringify(subject), subject])).values()];
}
