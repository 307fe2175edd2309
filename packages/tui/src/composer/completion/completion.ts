import { foldStartingAt, type Piece } from "../editing/buffer.ts";
import { mentionAt, quotedName } from "./mentions.ts";
import { ranked } from "./rank.ts";

/** A command as the palette offers it: `/run`, what it does, and what its words are. */
export interface CommandSpec {
  /** Without the slash. */
  readonly name: string;
  readonly description: string;
  /** What its first words are, in order. Free text may follow. */
  readonly takes?: readonly ArgumentSpec[];
}

export interface ArgumentSpec {
  /** Names the list of choices that fit here, such as `pipeline` or `run`. */
  readonly kind: string;
  /** The command says something without it. */
  readonly optional?: boolean;
}

/** One thing that can be chosen. Both texts may be hostile: they are cleaned where they are shown. */
export interface Choice {
  readonly value: string;
  readonly description?: string;
}

/** What there is to complete, besides files. */
export interface CompletionSource {
  readonly commands: readonly CommandSpec[];
  /** The choices for a kind of argument; none for free text. */
  choices(kind: string): readonly Choice[];
}

/** A word in front of the cursor that can be completed, and with what. */
export interface Completion {
  readonly kind: "command" | "argument" | "file";
  /** What a choice replaces. */
  readonly start: number;
  readonly end: number;
  readonly query: string;
  /** The best first. Files come from elsewhere. */
  readonly choices: readonly Choice[];
}

const MOST_CHOICES = 50;
const WORD = /"(?:[^"\\]|\\.)*"?|\S+/g;

/** What can be completed at a cursor: a file behind `@`, a command at the beginning, a word of a command. */
export function completionAt(piece: Piece, cursor: number, source: CompletionSource): Completion | undefined {
  const mention = mentionAt(piece, cursor);
  if (mention !== undefined) return { kind: "file", ...mention, choices: [] };
  const line = commandLine(piece, cursor);
  if (line === undefined) return undefined;
  const end = cursor + (/^[^\s]*/.exec(line.after)?.[0].length ?? 0);
  const [name = "", ...words] = line.before.slice(1).match(WORD) ?? [];
  const isBlank = line.before === "/" || /\s$/.test(line.before);
  if (words.length === 0 && !(isBlank && name !== "")) {
    const choices = ranked(source.commands, (command) => command.name, name, MOST_CHOICES);
    return { kind: "command", start: 0, end, query: name, choices: choices.map(choiceOf) };
  }
  const takes = source.commands.find((command) => command.name === name)?.takes ?? [];
  const argument = takes[isBlank ? words.length : words.length - 1];
  if (argument === undefined) return undefined;
  const query = isBlank ? "" : (words.at(-1) ?? "");
  const choices = ranked(source.choices(argument.kind), (choice) => choice.value, query, MOST_CHOICES);
  return { kind: "argument", start: cursor - query.length, end, query, choices };
}

/** The line of a command around the cursor, where the text is one and nothing folded or broken is in front of it. */
function commandLine(piece: Piece, cursor: number): { readonly before: string; readonly after: string } | undefined {
  if (cursor === 0 || piece.text[0] !== "/" || foldStartingAt(piece.folds, 0) !== undefined) return undefined;
  const fold = piece.folds.find((one) => one.start >= cursor);
  if (cursor > 1_000 || piece.folds.some((one) => one.start < cursor)) return undefined;
  const before = piece.text.slice(0, cursor);
  if (before.includes("\n") || /^\/\s/.test(before)) return undefined;
  return { before, after: piece.text.slice(cursor, Math.min(fold?.start ?? piece.text.length, cursor + 1_000)) };
}

function choiceOf(command: CommandSpec): Choice {
  return { value: command.name, description: command.description };
}

/** What stands in the text for a choice. */
export function wordFor(completion: Completion, choice: Choice): string {
  if (completion.kind === "command") return `/${choice.value}`;
  const name = quotedName(choice.value);
  return completion.kind === "file" ? `@${name}` : name;
}

/** Whether a command goes on when nothing follows its name. */
export function standsAlone(name: string, commands: readonly CommandSpec[]): boolean {
  const first = commands.find((command) => command.name === name)?.takes?.[0];
  return first === undefined || first.optional === true;
}
