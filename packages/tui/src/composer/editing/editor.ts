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
import { type Edit, NO_HISTORY, redone, rememberEdit, type UndoHistory, undone } from "./undo.ts";

/** An edited text. `cursor` is a UTF-16 offset between two graphemes and outside of folds. */
export interface Editor {
  /** Includes folded pastes. */
  readonly text: string;
  readonly folds: readonly Fold[];
  readonly cursor: number;
  /** The column that vertical moves keep. */
  readonly goal?: number;
  readonly past: UndoHistory;
  /** The last cut, for yank. */
  readonly killed: Piece;
  /** Set right after a cut: the next cut is added to it. */
  readonly killing: boolean;
}

/** Longest text, in UTF-16 units. */
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

/** An editor with a text and the cursor at its end. */
export function editorOf(text: string): Inserted {
  return replaceAll(EMPTY_EDITOR, text);
}

/** Line breaks become `\n`. */
export function insertTyped(editor: Editor, text: string): Inserted {
  return insert(editor, plainPiece(normal(text)), true);
}

/** A long paste is folded. */
export function insertPasted(editor: Editor, text: string): Inserted {
  return insert(editor, pasted(normal(text), editor.folds), false);
}

/** Replaces the whole text; folds it only if it would be slow to show. */
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
  const why = `not inserted: the text would have ${length.toLocaleString("en")} characters; the limit is ${most}`;
  return { ok: false, why };
}

function pasted(text: string, folds: readonly Fold[]): Piece {
  return isLong(text) ? foldedPiece(text, nextFoldNumber(folds)) : plainPiece(text);
}

function normal(text: string): string {
  return text.replaceAll(/\r\n?/g, "\n").toWellFormed();
}

/** Replaces the text between two boundaries; the cursor moves after the insertion. */
export function change(editor: Editor, start: number, end: number, inserted: Piece, typed = false): Editor {
  if (start === end && inserted.text === "") return editor;
  const removed = slicePiece(editor, start, end);
  const piece = splicePiece(editor, start, end, inserted);
  const cursor = boundaryAt(piece, start + inserted.text.length);
  const edit: Edit = { at: start, removed, inserted, cursorBefore: editor.cursor, cursorAfter: cursor, typed };
  return withCursor({ ...editor, ...piece, past: rememberEdit(editor.past, edit) }, cursor);
}

function withCursor(editor: Editor, cursor: number, goal?: number): Editor {
  const { goal: _, ...rest } = editor;
  return { ...rest, cursor, killing: false, ...(goal === undefined ? {} : { goal }) };
}

/** The target of a move or a deletion. */
export type CursorTarget = "left" | "right" | "wordLeft" | "wordRight" | "lineStart" | "lineEnd" | "start" | "end";

export function move(editor: Editor, to: CursorTarget): Editor {
  return withCursor(editor, targetOffset(editor, to));
}

/** Moves to an offset; `goal` is the column to keep. */
export function moveTo(editor: Editor, offset: number, goal?: number): Editor {
  return withCursor(editor, boundaryAt(editor, offset), goal);
}

function targetOffset(editor: Editor, to: CursorTarget, words: WordKind = "name"): number {
  const { cursor, text } = editor;
  if (to === "left") return boundaryBefore(editor, cursor);
  if (to === "right") return boundaryAfter(editor, cursor);
  if (to === "wordLeft") return wordStart(editor, cursor, words);
  if (to === "wordRight") return wordEnd(editor, cursor, words);
  if (to === "lineStart") return lineStart(editor);
  if (to === "lineEnd") return lineEnd(editor);
  return to === "start" ? 0 : text.length;
}

/** Line breaks in folds end no line. */
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

/** Deletes from the cursor to a target. */
export function erase(editor: Editor, to: CursorTarget): Editor {
  const target = targetOffset(editor, to);
  return change(editor, Math.min(target, editor.cursor), Math.max(target, editor.cursor), plainPiece(""));
}

/** Cuts from the cursor to a target; consecutive cuts are yanked together. At the edge of a line, cuts its line break. */
export function kill(editor: Editor, to: CursorTarget, words: WordKind = "name"): Editor {
  let target = targetOffset(editor, to, words);
  if (target === editor.cursor && to === "lineStart") target = boundaryBefore(editor, target);
  if (target === editor.cursor && to === "lineEnd") target = boundaryAfter(editor, target);
  if (target === editor.cursor) return editor;
  const start = Math.min(target, editor.cursor);
  const cut = slicePiece(editor, start, Math.max(target, editor.cursor));
  const earlier = editor.killing ? renumbered(editor.killed, cut.folds) : plainPiece("");
  const killed = target < editor.cursor ? joinPieces(cut, earlier) : joinPieces(earlier, cut);
  return { ...change(editor, start, start + cut.text.length, plainPiece("")), killed, killing: true };
}

export function yank(editor: Editor): Inserted {
  return insert(editor, renumbered(editor.killed, editor.folds), false);
}

export function undo(editor: Editor): Editor {
  const edit = editor.past.undo.at(-1);
  if (edit === undefined) return editor;
  const past = { undo: editor.past.undo.slice(0, -1), redo: [...editor.past.redo, edit] };
  return withCursor({ ...editor, ...undone(editor, edit), past }, edit.cursorBefore);
}

export function redo(editor: Editor): Editor {
  const edit = editor.past.redo.at(-1);
  if (edit === undefined) return editor;
  const past = { undo: [...editor.past.undo, edit], redo: editor.past.redo.slice(0, -1) };
  return withCursor({ ...editor, ...redone(editor, edit), past }, edit.cursorAfter);
}

/** Whether Enter inserts a line break: after a backslash at the end of a line. */
export function endsInBackslash(editor: Editor): boolean {
  const { text, cursor, folds } = editor;
  if (text[cursor - 1] !== "\\" || foldEndingAt(folds, cursor) !== undefined) return false;
  return cursor === text.length || (text[cursor] === "\n" && foldStartingAt(folds, cursor) === undefined);
}

export function breakAtBackslash(editor: Editor): Editor {
  return change(editor, editor.cursor - 1, editor.cursor, plainPiece("\n"));
}

const IN_WORD = /[\p{L}\p{N}\p{M}_]/u;
const BLANK = /\s/;

/** Words are letters and digits (`name`) or everything but blanks (`blank`). */
type WordKind = "name" | "blank";

/** The start of the word before an offset. A fold is a word. */
function wordStart(piece: Piece, offset: number, kind: WordKind): number {
  let at = offset;
  while (at > 0 && foldEndingAt(piece.folds, at) === undefined && !isInWord(charBefore(piece, at), kind))
    at -= charBefore(piece, at).length;
  const fold = foldEndingAt(piece.folds, at);
  if (fold !== undefined) return fold.start;
  while (at > 0 && foldEndingAt(piece.folds, at) === undefined && isInWord(charBefore(piece, at), kind))
    at -= charBefore(piece, at).length;
  // Never inside a grapheme.
  return boundaryAt(piece, at) === at ? at : boundaryBefore(piece, at);
}

/** The end of the word after an offset. A fold is a word. */
function wordEnd(piece: Piece, offset: number, kind: WordKind): number {
  const end = piece.text.length;
  let at = offset;
  while (at < end && foldStartingAt(piece.folds, at) === undefined && !isInWord(charAfter(piece, at), kind))
    at += charAfter(piece, at).length;
  const fold = foldStartingAt(piece.folds, at);
  if (fold !== undefined) return fold.end;
  while (at < end && foldStartingAt(piece.folds, at) === undefined && isInWord(charAfter(piece, at), kind))
    at += charAfter(piece, at).length;
  return boundaryAt(piece, at);
}

function isInWord(character: string, kind: WordKind): boolean {
  return kind === "name" ? IN_WORD.test(character) : !BLANK.test(character);
}

function charAfter(piece: Piece, offset: number): string {
  return String.fromCodePoint(piece.text.codePointAt(offset) ?? 0);
}

function charBefore(piece: Piece, offset: number): string {
  const low = piece.text.charCodeAt(offset - 1);
  const high = offset > 1 ? piece.text.charCodeAt(offset - 2) : 0;
  const pair = low >= 0xdc00 && low <= 0xdfff && high >= 0xd800 && high <= 0xdbff;
  return piece.text.slice(offset - (pair ? 2 : 1), offset);
}
