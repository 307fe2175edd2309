import { plainPiece } from "../editing/buffer.ts";
import { change, type Editor } from "../editing/editor.ts";
import { type Choice, type Completion, type CompletionSource, completionAt, wordFor } from "./completion.ts";
import type { FoundFiles } from "./file-finder.ts";
import { holdsInOrder } from "./rank.ts";

/** What is offered for the word at the cursor. Never empty while it is open. */
export interface Palette extends Completion {
  readonly chosen: number;
}

/** What fits at the cursor, with the files that are known by now; `chosen` stays with what was chosen for the same word. */
export function paletteAt(
  editor: Editor,
  source: CompletionSource,
  files: FoundFiles | undefined,
  before: Palette | undefined,
): { readonly completion: Completion | undefined; readonly palette: Palette | undefined } {
  const found = completionAt(editor, editor.cursor, source);
  if (found === undefined) return { completion: undefined, palette: undefined };
  const completion = found.kind === "file" ? { ...found, choices: fileChoices(found.query, files) } : found;
  if (completion.choices.length === 0) return { completion, palette: undefined };
  const stays = before?.start === completion.start && before.query === completion.query;
  const kept = stays
    ? completion.choices.findIndex((choice) => choice.value === before.choices[before.chosen]?.value)
    : 0;
  return { completion, palette: { ...completion, chosen: Math.max(0, kept) } };
}

/** Until the answer for this query is there, what still fits of the one before. */
function fileChoices(query: string, files: FoundFiles | undefined): readonly Choice[] {
  const known = files?.files ?? [];
  const typed = query.toLowerCase();
  const fitting = files?.query === query ? known : known.filter((file) => holdsInOrder(file.toLowerCase(), typed));
  return fitting.map((value) => ({ value }));
}

/** The next or the one before, around the ends. */
export function choose(palette: Palette, by: -1 | 1): Palette {
  const { length } = palette.choices;
  return { ...palette, chosen: (palette.chosen + by + length) % length };
}

/** The text with the word completed and a blank behind it, the cursor behind that. */
export function accepted(editor: Editor, palette: Palette): Editor {
  const choice = palette.choices[palette.chosen];
  if (choice === undefined) return editor;
  // A blank that is there already is taken along.
  const end = editor.text[palette.end] === " " ? palette.end + 1 : palette.end;
  return change(editor, palette.start, end, plainPiece(`${wordFor(palette, choice)} `));
}

/** Whether the word at the cursor is already what would be put in its place. */
export function isTyped(editor: Editor, palette: Palette): boolean {
  const choice = palette.choices[palette.chosen];
  return choice !== undefined && editor.text.slice(palette.start, palette.end) === wordFor(palette, choice);
}
