import { type Edit, NO_HISTORY, redone, rememberEdit, type UndoHistory, undone } from "../history/past.ts";
import {
  boundaryAfter,
  boundaryAt,
  boundaryBefore,
  type Fold,
  foldEndingAt,
  foldedPiece,
  foldStartingAt,
  isLong,
  joinPieces,
  nextFoldNumber,
  type Piece,
  plainPiece,
  renumbered,
  slicePiece,
  splicePiece,
} from "./buffer.ts";
import { type WordKind, wordEnd, wordStart } from "./words.ts";

/** A text while it is edited. `cursor` is a UTF-16 offset, always between two graphemes and never inside a fold. */
export interface Editor {
  /** The whole text, pastes included. */
  readonly text: string;
  readonly folds: readonly Fold[];
  readonly cursor: number;
  /** Column that moves up and down keep, in cells; set by such a move only. */
  readonly goal?: number;
  readonly past: UndoHistory;
  /** What was cut last, for yank. */
  readonly killed: Piece;
  /** Set right after a cut: the next one is added to it. */
  readonly killing: boolean;
}

/** Characters (UTF-16 units) that a text may have. */
export const MAX_TEXT = 1_000_000;

export type Inserted = { readonly ok: true; readonly editor: Editor } | { readonly ok: false; readonly why: string };

export const EMPTY_EDITOR: Editor = {
  text: "",
  folds: [],
  cursor: 0,
  past: NO_HISTORY,
  killed: plainPiece(""),
  killing: false,
};

/** An editor that holds a text, the cursor at its end; undoing leads back to no text. Too long ones are refused. */
export function editorOf(text: string): Inserted {
  return replaceAll(EMPTY_EDITOR, text);
}

/** What was typed. Line breaks become `\n`. */
export function insertTyped(editor: Editor, text: string): Inserted {
  return insert(editor, plainPiece(normal(text)), true);
}

/** What was pasted: folded when it is long. */
export function insertPasted(editor: Editor, text: string): Inserted {
  return insert(editor, pasted(normal(text), editor.folds), false);
}

/** Everything at once, as after an editor of one's own: long texts are folded only where they would be slow to show. */
export function replaceAll(editor: Editor, text: string): Inserted {
  const whole = normal(text);
  if (whole === editor.text) return { ok: true, editor };
  if (whole.length > MAX_TEXT) return tooLong(whole.length);
  const piece = whole.length > 20_000 ? foldedPiece(whole, 1) : plainPiece(whole);
  return { ok: true, editor: change(editor, 0, editor.text.length, piece) };
}

function insert(editor: Editor, piece: Piece, typed: boolean): Inserted {
  if (piece.text === "") return { ok: true, editor };
  const length = editor.text.length + piece.text.length;
  if (length > MAX_TEXT) return tooLong(length);
  return { ok: true, editor: change(editor, editor.cursor, editor.cursor, piece, typed) };
}

function tooLong(length: number): Inserted {
  const most = MAX_TEXT.toLocaleString("en");
  const why = `not inserted: the text would have ${length.toLocaleString("en")} characters, and ${most} is the most`;
  return { ok: false, why };
}

function pasted(text: string, folds: readonly Fold[]): Piece {
  return isLong(text) ? foldedPiece(text, nextFoldNumber(folds)) : plainPiece(text);
}

function normal(text: string): string {
  return text.replaceAll(/\r\n?/g, "\n").toWellFormed();
}

/** Replaces what is between two boundaries; the cursor comes to stand behind what was inserted. */
export function change(editor: Editor, start: number, end: number, inserted: Piece, typed = false): Editor {
  if (start === end && inserted.text === "") return editor;
  const removed = slicePiece(editor, start, end);
  const piece = splicePiece(editor, start, end, inserted);
  const cursor = boundaryAt(piece, start + inserted.text.length);
  const edit: Edit = { at: start, removed, inserted, cursorBefore: editor.cursor, cursorAfter: cursor, typed };
  return at({ ...editor, ...piece, past: rememberEdit(editor.past, edit) }, cursor);
}

/** The same text with the cursor elsewhere. */
function at(editor: Editor, cursor: number, goal?: number): Editor {
  const { goal: _, ...rest } = editor;
  return { ...rest, cursor, killing: false, ...(goal === undefined ? {} : { goal }) };
}

/** Where a move or a deletion may lead. */
export type CursorTarget = "left" | "right" | "wordLeft" | "wordRight" | "lineStart" | "lineEnd" | "start" | "end";

export function move(editor: Editor, to: CursorTarget): Editor {
  return at(editor, placeOf(editor, to));
}

/** To an offset that was read off a layout, with the column to keep. */
export function moveTo(editor: Editor, offset: number, goal?: number): Editor {
  return at(editor, boundaryAt(editor, offset), goal);
}

function placeOf(editor: Editor, to: CursorTarget, words: WordKind = "name"): number {
  const { cursor, text } = editor;
  if (to === "left") return boundaryBefore(editor, cursor);
  if (to === "right") return boundaryAfter(editor, cursor);
  if (to === "wordLeft") return wordStart(editor, cursor, words);
  if (to === "wordRight") return wordEnd(editor, cursor, words);
  if (to === "lineStart") return lineStart(editor);
  if (to === "lineEnd") return lineEnd(editor);
  return to === "start" ? 0 : text.length;
}

/** Line breaks in folds are not seen, so they end no line. */
function lineStart(editor: Editor): number {
  let offset = editor.cursor;
  for (;;) {
    const found = offset === 0 ? -1 : editor.text.lastIndexOf("\n", offset - 1);
    const fold = editor.folds.find((one) => one.start <= found && found < one.end);
    if (fold === undefined) return found + 1;
    offset = fold.start;
  }
}

function lineEnd(editor: Editor): number {
  let offset = editor.cursor;
  for (;;) {
    const found = editor.text.indexOf("\n", offset);
    const fold = editor.folds.find((one) => one.start <= found && found < one.end);
    if (fold === undefined) return found === -1 ? editor.text.length : found;
    offset = fold.end;
  }
}

/** Deletes from the cursor to a place. */
export function erase(editor: Editor, to: CursorTarget): Editor {
  const place = placeOf(editor, to);
  return change(editor, Math.min(place, editor.cursor), Math.max(place, editor.cursor), plainPiece(""));
}

/** Cuts from the cursor to a place; cuts in a row are yanked together. At the line's edge its break is cut. */
export function kill(editor: Editor, to: CursorTarget, words: WordKind = "name"): Editor {
  let place = placeOf(editor, to, words);
  if (place === editor.cursor && to === "lineStart") place = boundaryBefore(editor, place);
  if (place === editor.cursor && to === "lineEnd") place = boundaryAfter(editor, place);
  if (place === editor.cursor) return editor;
  const start = Math.min(place, editor.cursor);
  const cut = slicePiece(editor, start, Math.max(place, editor.cursor));
  const kept = editor.killing ? renumbered(editor.killed, cut.folds) : plainPiece("");
  const killed = place < editor.cursor ? joinPieces(cut, kept) : joinPieces(kept, cut);
  return { ...change(editor, start, start + cut.text.length, plainPiece("")), killed, killing: true };
}

export function yank(editor: Editor): Inserted {
  return insert(editor, renumbered(editor.killed, editor.folds), false);
}

export function undo(editor: Editor): Editor {
  const edit = editor.past.undo.at(-1);
  if (edit === undefined) return editor;
  const past = { undo: editor.past.undo.slice(0, -1), redo: [...editor.past.redo, edit] };
  return at({ ...editor, ...undone(editor, edit), past }, edit.cursorBefore);
}

export function redo(editor: Editor): Editor {
  const edit = editor.past.redo.at(-1);
  if (edit === undefined) return editor;
  const past = { undo: [...editor.past.undo, edit], redo: editor.past.redo.slice(0, -1) };
  return at({ ...editor, ...redone(editor, edit), past }, edit.cursorAfter);
}

/** Whether Enter means a line break here: a backslash in front of it, at the end of its line. */
export function endsInBackslash(editor: Editor): boolean {
  const { text, cursor, folds } = editor;
  if (text[cursor - 1] !== "\\" || foldEndingAt(folds, cursor) !== undefined) return false;
  return cursor === text.length || (text[cursor] === "\n" && foldStartingAt(folds, cursor) === undefined);
}

/** A line break in the backslash's place. */
export function breakAtBackslash(editor: Editor): Editor {
  return change(editor, editor.cursor - 1, editor.cursor, plainPiece("\n"));
}
