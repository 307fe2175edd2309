import { type Piece, splicePiece } from "./buffer.ts";

/** One change of a text, which can be undone. */
export interface Edit {
  readonly at: number;
  readonly removed: Piece;
  readonly inserted: Piece;
  readonly cursorBefore: number;
  readonly cursorAfter: number;
  /** Typed characters are undone word by word, other edits one by one. */
  readonly typed: boolean;
}

/** Edits to undo and redo, the newest last. */
export interface UndoHistory {
  readonly undo: readonly Edit[];
  readonly redo: readonly Edit[];
}

export const NO_HISTORY: UndoHistory = { undo: [], redo: [] };

const MAX_EDITS = 1_000;
/** UTF-16 units that the undo history may hold. */
const MAX_CHARACTERS = 4_000_000;

/** Adds an edit; typing in one word is joined into one edit. */
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
  let free = MAX_CHARACTERS;
  let from = edits.length;
  while (from > 0 && edits.length - from < MAX_EDITS) {
    const edit = edits[from - 1];
    free -= (edit?.removed.text.length ?? 0) + (edit?.inserted.text.length ?? 0);
    // The newest edit always stays.
    if (free < 0 && from < edits.length) break;
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
