import { ANYWHERE, cdTarget } from "./directory.ts";
import { type Findings, type FoundCommand, locate, newFindings, type ShellPath } from "./findings.ts";
import { readReader } from "./readers.ts";
import { type RefusalCode, ShellRefusal } from "./refusal.ts";
import { checkText } from "./text.ts";
import { walkLine } from "./walk.ts";

/** One command that a line would run. */
export interface ShellCommand {
  /** Words after quote removal. A dynamic word begins with U+0001, which no literal word can hold. */
  readonly argv: readonly string[];
  /** For each word: only known when it runs (`$x`, `$(…)`, globs, `~`, braces), and perhaps more than one word then. */
  readonly dynamic: readonly boolean[];
  /** What it was found inside, outermost first: `["env"]`, `["xargs", "sh -c"]`, `["$()"]`. */
  readonly via: readonly string[];
  /** Names that are changed in its environment; `*` when that is emptied or cannot be told. */
  readonly assignments: readonly string[];
  /**
   * It only reads, or is a wrapper that does nothing besides running the commands reported with it. Its redirections
   * and operands are paths of the line and have to be judged all the same.
   */
  readonly readOnly: boolean;
}

/** What a command line would do, as far as its text tells; the gate compares these facts. */
export type ShellFacts =
  | { readonly ok: true; readonly commands: readonly ShellCommand[]; readonly paths: readonly ShellPath[] }
  | { readonly ok: false; readonly code: RefusalCode; readonly reason: string };

export interface AnalyseOptions {
  /** Absolute path of the folder the line starts in, so that a `cd` to that very folder counts as staying. */
  readonly root?: string;
}

/** Begins the text of every word that is only known at run time, so that it equals no literal word. */
export const DYNAMIC_MARK = "\u0001";

/**
 * Every command that `bash -c command` would run, and every path that it names. Decides nothing. Where the text does
 * not tell what runs, a command stands whose only word is dynamic; where it cannot be read at all, `ok` is false.
 */
export function analyseShell(command: string, options: AnalyseOptions = {}): ShellFacts {
  const findings = newFindings(options.root);
  try {
    checkText(command);
    walkLine(command, findings);
  } catch (thrown) {
    if (thrown instanceof ShellRefusal) return { ok: false, code: thrown.code, reason: thrown.message };
    // A fault of the parser on hostile text must not let the text pass.
    const reason = thrown instanceof Error ? thrown.message : String(thrown);
    return { ok: false, code: "unsupported", reason: `the shell parser failed: ${reason}` };
  }
  // A function called with names set in front hands them to all that its body runs.
  if (findings.shadowed.size > 0) for (const name of findings.prefixed) findings.environment.add(name);
  const anywhere = findings.outOfOrder && findings.moved;
  const readings = findings.commands.map((found) => readCommand(found, findings, anywhere));
  const operands = readings.flatMap((reading) => reading.paths);
  const redirects = findings.paths.flatMap((found) => locate(found, anywhere));
  return {
    ok: true,
    commands: readings.map((reading) => reading.command),
    paths: distinct([...redirects, ...operands]),
  };
}

function readCommand(
  found: FoundCommand,
  findings: Findings,
  anywhere: boolean,
): { command: ShellCommand; paths: readonly ShellPath[] } {
  const { words, context, directories } = found;
  const name = words[0]?.dynamic === false ? words[0].text : "";
  const program = name.slice(name.lastIndexOf("/") + 1);
  const shadowed = findings.shadowed.has(name) || findings.shadowed.has("");
  const dynamic = words.map((word, at) => word.dynamic || (at === 0 && shadowed));
  const assignments = [...new Set([...context.assignments, ...findings.environment])];
  const reading = found.unseen ? undefined : readReader(program, words);
  // Somewhere else git may find settings that run programs, in a repository nobody vouched for.
  const atHome = !anywhere && directories.length === 1 && directories[0] === "";
  const trusted = !shadowed && !findings.redefined && !context.foreign && assignments.length === 0;
  const harmless = found.transparent ?? (name === program && reading?.readOnly === true && (name !== "git" || atHome));
  const paths = (reading?.paths ?? []).flatMap((word) =>
    locate(
      {
        word,
        access: "read",
        from: "operand",
        directories: context.foreign ? ANYWHERE : directories,
        opens: reading?.opens,
      },
      anywhere,
    ),
  );
  return {
    command: {
      argv: words.map((word, at) => (dynamic[at] === true ? DYNAMIC_MARK + word.text : word.text)),
      dynamic,
      via: context.via,
      assignments,
      readOnly: trusted && (name === "cd" ? cdTarget(words, findings.root) !== undefined : harmless),
    },
    paths,
  };
}

function distinct(paths: readonly ShellPath[]): readonly ShellPath[] {
  const seen = new Map(
    paths.map((path) => [JSON.stringify([path.path, path.access, path.dynamic, path.from, path.opens]), path]),
  );
  return [...seen.values()];
}
