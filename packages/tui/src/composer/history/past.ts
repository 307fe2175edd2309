import { type Piece, splicePiece } from "../editing/buffer.ts";

/** One change of a text, with what it takes to go back. */
export interface Edit {
  readonly at: number;
  readonly removed: Piece;
  readonly inserted: Piece;
  readonly cursorBefore: number;
  readonly cursorAfter: number;
  /** Typed characters are undone by the word, everything else one by one. */
  readonly typed: boolean;
}

/** What can be undone and redone, the newest last. */
export interface UndoHistory {
  readonly undo: readonly Edit[];
  readonly redo: readonly Edit[];
}

export const NO_HISTORY: UndoHistory = { undo: [], redo: [] };

const MOST_EDITS = 1_000;
/** Characters that undoing may hold: some texts of the largest size. */
const MOST_CHARACTERS = 4_000_000;

/** The past with one more edit: one with the edit before where both were typed in the same word. */
export function rememberEdit(past: UndoHistory, edit: Edit): UndoHistory {
  const before = past.undo.at(-1);
  const joined = before === undefined ? undefined : joinTyped(before, edit);
  const undo = joined === undefined ? [...past.undo, edit] : [...past.undo.slice(0, -1), joined];
  return { undo: capped(undo), redo: [] };
}

function joinTyped(before: Edit, edit: Edit): Edit | undefined {
  if (!before.typed || !edit.typed || before.cursorAfter !== edit.at) return undefined;
  if (before.at + before.inserted.text.length !== edit.at || edit.removed.text !== "") return undefined;
  if (/\s$/.test(before.inserted.text) && /^\S/.test(edit.inserted.text)) return undefined;
  const inserted = { text: before.inserted.text + edit.inserted.text, folds: [] };
  return { ...before, inserted, cursorAfter: edit.cursorAfter };
}

function capped(edits: readonly Edit[]): readonly Edit[] {
  let left = MOST_CHARACTERS;
  let from = edits.length;
  while (from > 0 && edits.length - from < MOST_EDITS) {
    const edit = edits[from - 1];
    left -= (edit?.removed.text.length ?? 0) + (edit?.inserted.text.length ?? 0);
    // The newest stays whatever it weighs.
    if (left < 0 && from < edits.length) break;
    from -= 1;
  }
  return from === 0 ? edits : edits.slice(from);
}

export function undone(piece: Piece, edit: Edit): Piece {
  return splicePiece(piece, edit.at, edit.at + edit.inserted.text.length, edit.removed);
}

export function redone(piece: Piece, edit: Edit): Piece {
  return splicePiece(piece, edit.at, edit.at + edit.removed.text.length, edit.inserted);
}
