import {
  boundaryAfter,
  boundaryAt,
  boundaryBefore,
  type FoldedText,
  foldPaste,
  isLong,
  isPaste,
  keepPastes,
  lineEnd,
  lineStart,
  movePastes,
  pastesIn,
  wholeText,
} from "./pastes.ts";

/** An edited text. `cursor` is a UTF-16 offset between two graphemes. */
export interface Editor extends FoldedText {
  readonly cursor: number;
  /** The column that vertical moves keep. */
  readonly goal?: number;
  readonly past: UndoHistory;
  /** The last cut, for yank. */
  readonly killed: FoldedText;
  /** Set right after a cut: the next cut is added to it. */
  readonly killing: boolean;
}

type Snapshot = Pick<Editor, "text" | "cursor">;

/** States to undo and redo, the newest last. */
interface UndoHistory {
  readonly undo: readonly Snapshot[];
  readonly redo: readonly Snapshot[];
  /** The end of what was typed last: typing on in the same word adds no state. */
  readonly typedTo?: number;
}

/** Longest text, in UTF-16 units. */
export const MAX_TEXT = 1_000_000;
const MAX_UNDO = 1_000;
/** UTF-16 units that the undo history may hold, and as many in pastes. */
const MAX_UNDO_TEXT = 4_000_000;

export type Inserted = { readonly ok: true; readonly editor: Editor } | { readonly ok: false; readonly why: string };

const NOTHING: FoldedText = { text: "", pastes: [] };

export const EMPTY_EDITOR: Editor = {
  ...NOTHING,
  cursor: 0,
  past: { undo: [], redo: [] },
  killed: NOTHING,
  killing: false,
};

/** An editor with a text and the cursor at its end. */
export function editorOf(text: string): Inserted {
  return replaceAll(EMPTY_EDITOR, text);
}

/** Line breaks become `\n`. */
export function insertTyped(editor: Editor, text: string): Inserted {
  return insert(editor, text, true);
}

/** A long paste is folded. */
export function insertPasted(editor: Editor, text: string): Inserted {
  return insert(editor, text, false);
}

/** Replaces the whole text; folds it only if it would be slow to show. */
export function replaceAll(editor: Editor, text: string): Inserted {
  const whole = normal(text);
  if (whole === wholeText(editor)) return { ok: true, editor };
  if (whole.length > MAX_TEXT) return tooLong(whole.length);
  const end = editor.text.length;
  return { ok: true, editor: whole.length > 20_000 ? fold(editor, whole, 0, end) : change(editor, 0, end, whole) };
}

function insert(editor: Editor, inserted: string, typed: boolean): Inserted {
  const text = normal(inserted);
  if (text === "") return { ok: true, editor };
  const length = wholeText(editor).length + text.length;
  if (length > MAX_TEXT) return tooLong(length);
  const { cursor } = editor;
  const isFolded = !typed && isLong(text);
  return {
    ok: true,
    editor: isFolded ? fold(editor, text, cursor, cursor) : change(editor, cursor, cursor, text, typed),
  };
}

/** Replaces the text between two boundaries by a paste. */
function fold(editor: Editor, inserted: string, start: number, end: number): Editor {
  const lean = withoutOldPastes(editor);
  const { text, pastes } = foldPaste(lean.pastes, inserted);
  return change({ ...lean, pastes }, start, end, text);
}

/** Forgets the pastes that were undone, and the oldest states to undo if the pastes of all are too long. */
function withoutOldPastes(editor: Editor): Editor {
  const { pastes, past } = editor;
  const kept = new Set(pastesIn(editor).keys());
  let free = MAX_UNDO_TEXT;
  const undo = [];
  for (const state of past.undo.toReversed()) {
    const added = [...pastesIn({ text: state.text, pastes })].filter(([number]) => !kept.has(number));
    free -= added.reduce((sum, [, paste]) => sum + paste.length, 0);
    if (free < 0) break;
    for (const [number] of added) kept.add(number);
    undo.unshift(state);
  }
  return { ...editor, pastes: keepPastes(pastes, kept), past: { ...past, undo, redo: [] } };
}

function tooLong(length: number): Inserted {
  const most = MAX_TEXT.toLocaleString("en");
  const why = `not inserted: the text would have ${length.toLocaleString("en")} characters; the limit is ${most}`;
  return { ok: false, why };
}

function normal(text: string): string {
  return text.replaceAll(/\r\n?/g, "\n").toWellFormed();
}

/** Replaces the text between two boundaries; the cursor moves after the insertion. */
export function change(editor: Editor, start: number, end: number, inserted: string, typed = false): Editor {
  if (start === end && inserted === "") return editor;
  const text = editor.text.slice(0, start) + inserted + editor.text.slice(end);
  const past = remembered(editor, start, inserted, typed);
  return withCursor({ ...editor, text, past }, boundaryAt(text, start + inserted.length));
}

function remembered({ text, cursor, past }: Editor, start: number, inserted: string, typed: boolean): UndoHistory {
  const isNewWord = /\s/.test(text.charAt(start - 1)) && /^\S/.test(inserted);
  const isSame = typed && past.typedTo === start && !isNewWord;
  const undo = isSame ? past.undo : capped([...past.undo, { text, cursor }]);
  return { undo, redo: [], ...(typed ? { typedTo: start + inserted.length } : {}) };
}

function capped(states: readonly Snapshot[]): readonly Snapshot[] {
  let free = MAX_UNDO_TEXT;
  const dropped = states.findLastIndex(({ text }) => {
    free -= text.length;
    return free < 0;
  });
  return states.slice(Math.max(dropped + 1, states.length - MAX_UNDO));
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
  return withCursor(editor, boundaryAt(editor.text, offset), goal);
}

function targetOffset({ cursor, text }: Editor, to: CursorTarget, words: WordKind = "name"): number {
  switch (to) {
    case "left":
      return boundaryBefore(text, cursor);
    case "right":
      return boundaryAfter(text, cursor);
    case "wordLeft":
      return wordEdge(text, cursor, -1, words);
    case "wordRight":
      return wordEdge(text, cursor, 1, words);
    case "lineStart":
      return lineStart(text, cursor);
    case "lineEnd":
      return lineEnd(text, cursor);
    case "start":
      return 0;
    case "end":
      return text.length;
  }
}

export function erase(editor: Editor, to: CursorTarget): Editor {
  const target = targetOffset(editor, to);
  return change(editor, Math.min(target, editor.cursor), Math.max(target, editor.cursor), "");
}

/** Cuts from the cursor to a target; consecutive cuts are yanked together. At the edge of a line, cuts its line break. */
export function kill(editor: Editor, to: CursorTarget, words: WordKind = "name"): Editor {
  const { text, pastes, cursor } = editor;
  let target = targetOffset(editor, to, words);
  if (target === cursor && to === "lineStart") target = boundaryBefore(text, target);
  if (target === cursor && to === "lineEnd") target = boundaryAfter(text, target);
  if (target === cursor) return editor;
  const [start, end] = [Math.min(target, cursor), Math.max(target, cursor)];
  const earlier = editor.killing ? editor.killed : NOTHING;
  const cut = movePastes({ text: text.slice(start, end), pastes }, earlier.pastes);
  const killed = { ...cut, text: target < cursor ? cut.text + earlier.text : earlier.text + cut.text };
  return { ...change(editor, start, end, ""), killed, killing: true };
}

/** Inserts the last cut. Its pastes get numbers of their own. */
export function yank(editor: Editor): Inserted {
  const { killed, cursor } = editor;
  if (killed.text === "") return { ok: true, editor };
  const length = wholeText(editor).length + wholeText(killed).length;
  if (length > MAX_TEXT) return tooLong(length);
  const lean = withoutOldPastes(editor);
  const { text, pastes } = movePastes(killed, lean.pastes);
  return { ok: true, editor: change({ ...lean, pastes }, cursor, cursor, text) };
}

export function undo(editor: Editor): Editor {
  const { undo: states, redo: undone } = editor.past;
  return restored(editor, states.at(-1), { undo: states.slice(0, -1), redo: [...undone, snapshotOf(editor)] });
}

export function redo(editor: Editor): Editor {
  const { undo: states, redo: undone } = editor.past;
  return restored(editor, undone.at(-1), { undo: [...states, snapshotOf(editor)], redo: undone.slice(0, -1) });
}

function restored(editor: Editor, state: Snapshot | undefined, past: UndoHistory): Editor {
  return state === undefined ? editor : withCursor({ ...editor, text: state.text, past }, state.cursor);
}

function snapshotOf({ text, cursor }: Editor): Snapshot {
  return { text, cursor };
}

/** Whether Enter inserts a line break: after a backslash at the end of a line. */
export function endsInBackslash({ text, cursor }: Editor): boolean {
  return text[cursor - 1] === "\\" && lineEnd(text, cursor) === cursor;
}

export function breakAtBackslash(editor: Editor): Editor {
  return change(editor, editor.cursor - 1, editor.cursor, "\n");
}

const IN_WORD = /[\p{L}\p{N}\p{M}_]/u;
const BLANK = /\s/;

/** Words are letters and digits (`name`) or everything but blanks (`blank`). */
type WordKind = "name" | "blank";

/** The start of the word before an offset (`step` -1), or the end of the word after it. A paste is a word. */
function wordEdge(text: string, offset: number, step: -1 | 1, kind: WordKind): number {
  let at = offset;
  let next = characterAt(text, at, step);
  const advance = (): void => {
    at += step * next.length;
    next = characterAt(text, at, step);
  };
  while (next !== "" && !isPaste(next) && !isInWord(next, kind)) advance();
  if (isPaste(next)) return at + step;
  while (next !== "" && !isPaste(next) && isInWord(next, kind)) advance();
  // Never inside a grapheme.
  return step === 1 || boundaryAt(text, at) === at ? boundaryAt(text, at) : boundaryBefore(text, at);
}

function isInWord(character: string, kind: WordKind): boolean {
  return kind === "name" ? IN_WORD.test(character) : !BLANK.test(character);
}

/** The code point before an offset (`step` -1) or after it; empty at the edge of the text. */
function characterAt(text: string, offset: number, step: -1 | 1): string {
  const isPair = step === -1 && (text.codePointAt(offset - 2) ?? 0) > 0xffff;
  const code = text.codePointAt(step === 1 ? offset : offset - (isPair ? 2 : 1));
  return code === undefined ? "" : String.fromCodePoint(code);
}
