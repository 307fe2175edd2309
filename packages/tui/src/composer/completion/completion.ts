import { change, type Editor } from "../editing/editor.ts";
import type { FoundFiles } from "./file-finder.ts";
import { mentionAt, quotedName } from "./mentions.ts";
import { holdsInOrder, ranked } from "./rank.ts";

/** A command, as the palette completes it. */
export interface CommandSpec {
  /** Without the slash. */
  readonly name: string;
  readonly description: string;
  /** Its first arguments; free text may follow. */
  readonly takes?: readonly ArgumentSpec[];
}

interface ArgumentSpec {
  /** The list of choices, such as `pipeline` or `run`. */
  readonly kind: string;
  readonly optional?: boolean;
}

/** A choice. Its texts may be hostile: they are sanitized when they are shown. */
export interface Choice {
  readonly value: string;
  readonly description?: string;
}

/** What can be completed besides files. */
export interface CompletionSource {
  readonly commands: readonly CommandSpec[];
  /** The choices for a kind of argument; none for free text. */
  choices(kind: string): readonly Choice[];
}

/** A word before the cursor, and its completions. */
export interface Completion {
  readonly kind: "command" | "argument" | "file";
  /** The range that a choice replaces. */
  readonly start: number;
  readonly end: number;
  readonly query: string;
  /** Best first; empty for files, which a FileFinder finds. */
  readonly choices: readonly Choice[];
}

const MAX_CHOICES = 50;
/** UTF-16 units of a command line. */
const MAX_LINE = 1_000;
const WORD = /"(?:[^"\\]|\\.)*"?|\S+/g;

/** What can be completed at a cursor: a file after `@`, a command, or an argument. */
function completionAt(text: string, cursor: number, source: CompletionSource): Completion | undefined {
  const mention = mentionAt(text, cursor);
  if (mention !== undefined) return { kind: "file", ...mention, choices: [] };
  const line = commandLine(text, cursor);
  if (line === undefined) return undefined;
  const end = cursor + (/^[^\s\udc00-\udfff]*/u.exec(text.slice(cursor, cursor + MAX_LINE))?.[0].length ?? 0);
  const [name = "", ...words] = line.slice(1).match(WORD) ?? [];
  const isBlank = line === "/" || /\s$/.test(line);
  if (words.length === 0 && !(isBlank && name !== "")) {
    const choices = ranked(source.commands, (command) => command.name, name, MAX_CHOICES);
    return { kind: "command", start: 0, end, query: name, choices: choices.map(choiceOf) };
  }
  const takes = source.commands.find((command) => command.name === name)?.takes ?? [];
  const argument = takes[isBlank ? words.length : words.length - 1];
  if (argument === undefined) return undefined;
  const query = isBlank ? "" : (words.at(-1) ?? "");
  const choices = ranked(source.choices(argument.kind), (choice) => choice.value, query, MAX_CHOICES);
  return { kind: "argument", start: cursor - query.length, end, query, choices };
}

/** The command line before the cursor, unless it contains a paste or a line break. */
function commandLine(text: string, cursor: number): string | undefined {
  if (cursor === 0 || text[0] !== "/" || cursor > MAX_LINE) return undefined;
  const before = text.slice(0, cursor);
  return /\n|^\/\s|[\udc00-\udfff]/u.test(before) ? undefined : before;
}

function choiceOf(command: CommandSpec): Choice {
  return { value: command.name, description: command.description };
}

export function wordFor(completion: Completion, choice: Choice): string {
  if (completion.kind === "command") return `/${choice.value}`;
  const name = quotedName(choice.value);
  return completion.kind === "file" ? `@${name}` : name;
}

/** Whether a command works without arguments. */
export function standsAlone(name: string, commands: readonly CommandSpec[]): boolean {
  const first = commands.find((command) => command.name === name)?.takes?.[0];
  return first === undefined || first.optional === true;
}

/** The choices for the word at the cursor; never empty. */
export interface Palette extends Completion {
  readonly chosen: number;
}

/** The completion at the cursor and its palette; the chosen value stays chosen while the word is the same. */
export function paletteAt(
  editor: Editor,
  source: CompletionSource,
  files: FoundFiles | undefined,
  before: Palette | undefined,
): { readonly completion: Completion | undefined; readonly palette: Palette | undefined } {
  const found = completionAt(editor.text, editor.cursor, source);
  if (found === undefined) return { completion: undefined, palette: undefined };
  const completion = found.kind === "file" ? { ...found, choices: fileChoices(found.query, files) } : found;
  if (completion.choices.length === 0) return { completion, palette: undefined };
  const isSameWord = before?.start === completion.start && before.query === completion.query;
  const chosen = isSameWord
    ? completion.choices.findIndex((choice) => choice.value === before.choices[before.chosen]?.value)
    : 0;
  return { completion, palette: { ...completion, chosen: Math.max(0, chosen) } };
}

/** Until the files for this query are found, those of the previous query that match. */
function fileChoices(query: string, files: FoundFiles | undefined): readonly Choice[] {
  const found = files?.files ?? [];
  const typed = query.toLowerCase();
  const matching = files?.query === query ? found : found.filter((file) => holdsInOrder(file.toLowerCase(), typed));
  return matching.map((value) => ({ value }));
}

/** The next or previous choice; wraps around. */
export function choose(palette: Palette, by: -1 | 1): Palette {
  const { length } = palette.choices;
  return { ...palette, chosen: (palette.chosen + by + length) % length };
}

/** Replaces the word by the choice and a blank. */
export function accepted(editor: Editor, palette: Palette): Editor {
  const choice = palette.choices[palette.chosen];
  if (choice === undefined) return editor;
  // Reuses a blank after the word.
  const end = editor.text[palette.end] === " " ? palette.end + 1 : palette.end;
  return change(editor, palette.start, end, `${wordFor(palette, choice)} `);
}

/** Whether the word is already the choice. */
export function isTyped(editor: Editor, palette: Palette): boolean {
  const choice = palette.choices[palette.chosen];
  return choice !== undefined && editor.text.slice(palette.start, palette.end) === wordFor(palette, choice);
}
