import type { StatusSymbol } from "./symbols.ts";

/** What words about the command of a state need. */
interface CommandFacts {
  readonly words: readonly string[];
  readonly state: "running" | "ended" | "ok" | "not_yet" | "error";
  readonly exitCode?: number;
}

export const COMMAND_SYMBOLS: Readonly<Record<CommandFacts["state"], StatusSymbol>> = {
  running: { sign: "▶", word: "running", style: "accent" },
  ended: { sign: "○", word: "ended", style: "dim" },
  ok: { sign: "✔", word: "done", style: "good" },
  not_yet: { sign: "↻", word: "not yet", style: "notice" },
  error: { sign: "✖", word: "failed", style: "bad" },
};

/** A longer path of a program is shown by its name. */
const LONGEST_PROGRAM = 32;

/** A program with its arguments on one line: those that would not stay one word are quoted. Untrusted text. */
export function commandLineOf({ words }: Pick<CommandFacts, "words">): string {
  const [program = "", ...others] = words;
  if (others.length === 0) return program;
  const name = program.length > LONGEST_PROGRAM ? program.replace(/^.*\/(?=[^/]+$)/s, "…/") : program;
  return [name, ...others].map((word) => (/^[^\s"'\\]+$/.test(word) ? word : JSON.stringify(word))).join(" ");
}

/** `attempt 3, exit 1`; empty unless the state is a poll that sleeps. */
export function polledText({
  polled,
}: {
  readonly polled?: { readonly attempt: number; readonly exitCode?: number };
}): string {
  if (polled === undefined) return "";
  const exit = exitText(polled);
  return `attempt ${polled.attempt}${exit === "" ? "" : `, ${exit}`}`;
}

/** `exit 1`; empty if the command did not end by itself. */
export function exitText({ exitCode }: Pick<CommandFacts, "exitCode">): string {
  return exitCode === undefined ? "" : `exit ${exitCode}`;
}
