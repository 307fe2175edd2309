import {
  accepted,
  type CompletionSource,
  choose,
  isTyped,
  type Palette,
  paletteAt,
  standsAlone,
  wordFor,
} from "./completion/completion.ts";
import type { FoundFiles } from "./completion/file-finder.ts";
import {
  breakAtBackslash,
  change,
  type Editor,
  EMPTY_EDITOR,
  endsInBackslash,
  type Inserted,
  moveTo,
  replaceAll,
} from "./editing/editor.ts";
import { layOut, offsetAt } from "./editing/layout.ts";
import { wholeText } from "./editing/pastes.ts";
import { beginSearch, type History, historyOf, type Search, searchByKey, step, submitted } from "./history/history.ts";
import { editByKey } from "./keymap.ts";
import { isChord, type Key } from "./keys.ts";

/** The input line and its palette, search and history. */
export interface Composer {
  readonly editor: Editor;
  readonly history: History;
  /** Set during a history search. */
  readonly search?: Search;
  readonly palette?: Palette;
  /** Start of the word whose palette the user closed. */
  readonly closedAt?: number;
  readonly files?: FoundFiles;
  /** The last query for files. */
  readonly fileQuery?: string;
  /** Why the last key had no effect. */
  readonly notice?: string;
}

export interface ComposerContext extends CompletionSource {
  /** Columns of the screen; Up and Down move by rows. */
  readonly width: number;
}

/** What the caller has to do. */
export type ComposerEffect =
  /** `text` includes folded pastes. */
  | { readonly kind: "submit"; readonly text: string }
  /** Edit in an external editor; the result goes to `replaceText`. */
  | { readonly kind: "edit-outside"; readonly text: string }
  /** Find files; the result goes to `filesFound`. */
  | { readonly kind: "find-files"; readonly query: string };

export interface Updated {
  readonly state: Composer;
  /** False if the key has no effect here; the state is unchanged. */
  readonly handled: boolean;
  readonly effect?: ComposerEffect;
}

/** Columns of the prompt, and one for the cursor after a full row. */
const MARGIN = 3;

export function createComposer(entries: readonly string[] = []): Composer {
  return { editor: EMPTY_EDITOR, history: historyOf(entries) };
}

/** Columns for text on a screen of that width. */
export function textColumns(width: number): number {
  return Math.max(1, width - (hasMargin(width) ? MARGIN : 1));
}

export function hasMargin(width: number): boolean {
  return width >= 8;
}

export function update(state: Composer, key: Key, context: ComposerContext): Updated {
  if (state.search !== undefined) return updateSearch(state, state.search, key, context);
  const inPalette = state.palette === undefined ? undefined : updatePalette(state, state.palette, key, context);
  if (inPalette !== undefined) return inPalette;
  if (isPlain(key, "tab")) return reopened(state, context);
  if (isPlain(key, "enter")) return entered(state, context);
  const direction = verticalOf(key);
  if (direction !== undefined) return moved(state, direction, context);
  if (isChord(key, "r")) return { state: quiet({ ...without(state), search: beginSearch(state) }), handled: true };
  if (isChord(key, "g"))
    return {
      state: quiet(without(state)),
      handled: true,
      effect: { kind: "edit-outside", text: wholeText(state.editor) },
    };
  const edited = editByKey(state.editor, key);
  return edited === undefined ? unhandled(state) : applied(state, edited, context);
}

/** Takes the result of `find-files`; late results are ignored. */
export function filesFound(state: Composer, files: FoundFiles, context: ComposerContext): Composer {
  if (files.query !== state.fileQuery) return state;
  const notified =
    files.fault === undefined || files.fault === state.files?.fault ? state : { ...state, notice: files.fault };
  const next = { ...notified, files };
  return state.search === undefined ? withPalette(next, context).state : next;
}

/** Replaces the text. Can be undone. */
export function replaceText(state: Composer, text: string): Composer {
  const replaced = replaceAll(state.editor, text);
  return replaced.ok ? quiet({ ...without(state), editor: replaced.editor }) : { ...state, notice: replaced.why };
}

/** Clears the text. Can be undone. */
export function clearText(state: Composer): Composer {
  const { search: _, ...rest } = state;
  const editor = change(state.editor, 0, state.editor.text.length, "");
  return quiet({ ...without(rest), editor, history: historyOf(state.history.entries) });
}

function unhandled(state: Composer): Updated {
  return { state, handled: false };
}

function applied(state: Composer, edited: Inserted, context: ComposerContext): Updated {
  if (!edited.ok) return { state: { ...state, notice: edited.why }, handled: true };
  const { editor } = edited;
  if (editor === state.editor || (editor.text === "" && state.editor.text === "")) return unhandled(state);
  // Moving the cursor opens no palette.
  const opens = editor.text !== state.editor.text || state.palette !== undefined;
  const next = quiet({ ...state, editor });
  return opens ? withPalette(next, context) : { state: next, handled: true };
}

/** The state with the palette for its text and cursor, and a query for files if needed. */
function withPalette(state: Composer, context: ComposerContext): Updated {
  const { completion, palette } = paletteAt(state.editor, context, state.files, state.palette);
  const { closedAt, ...open } = without(state);
  if (completion === undefined) return { state: open, handled: true };
  if (closedAt === completion.start) return { state: { ...open, closedAt }, handled: true };
  const next = palette === undefined ? open : { ...open, palette };
  if (completion.kind !== "file" || completion.query === state.fileQuery) return { state: next, handled: true };
  const effect = { kind: "find-files", query: completion.query } as const;
  return { state: { ...next, fileQuery: completion.query }, handled: true, effect };
}

function updatePalette(state: Composer, palette: Palette, key: Key, context: ComposerContext): Updated | undefined {
  const direction = verticalOf(key);
  if (direction !== undefined) return { state: { ...state, palette: choose(palette, direction) }, handled: true };
  if (isPlain(key, "escape")) return { state: quiet({ ...without(state), closedAt: palette.start }), handled: true };
  if (isPlain(key, "tab")) return completed(state, palette, context);
  return isPlain(key, "enter") ? enteredPalette(state, palette, context) : undefined;
}

/** Completes the word, or submits if it is complete and needs no argument. */
function enteredPalette(state: Composer, palette: Palette, context: ComposerContext): Updated {
  const { editor } = state;
  const command = palette.kind === "command" ? palette.choices[palette.chosen] : undefined;
  const needsMore = command !== undefined && !standsAlone(command.value, context.commands);
  if (isTyped(editor, palette) && !needsMore) return entered(state, context);
  const isAll = command !== undefined && editor.text.slice(palette.end).trim() === "";
  return isAll && !needsMore ? submit(state, wordFor(palette, command)) : completed(state, palette, context);
}

function completed(state: Composer, palette: Palette, context: ComposerContext): Updated {
  return withPalette(quiet({ ...without(state), editor: accepted(state.editor, palette) }), context);
}

/** Opens the palette of the word at the cursor again. */
function reopened(state: Composer, context: ComposerContext): Updated {
  const { closedAt: _, fileQuery: __, ...open } = without(state);
  const next = withPalette(open, context);
  return next.state.palette === undefined && next.effect === undefined ? unhandled(state) : next;
}

function entered(state: Composer, context: ComposerContext): Updated {
  const { editor } = state;
  if (endsInBackslash(editor)) return applied(state, { ok: true, editor: breakAtBackslash(editor) }, context);
  const text = wholeText(editor);
  return text.trim() === "" ? unhandled(state) : submit(state, text);
}

function submit(state: Composer, text: string): Updated {
  const editor = { ...EMPTY_EDITOR, killed: state.editor.killed };
  const { files } = state;
  const next = { editor, history: submitted(state.history, text), ...(files === undefined ? {} : { files }) };
  return { state: next, handled: true, effect: { kind: "submit", text } };
}

/** One row up or down; beyond the first and last row, through earlier inputs. */
function moved(state: Composer, direction: -1 | 1, context: ComposerContext): Updated {
  const { editor } = state;
  const layout = layOut(editor, editor.cursor, textColumns(context.width));
  const row = layout.cursor.row + direction;
  if (row >= 0 && row < layout.rows.length) {
    const goal = editor.goal ?? layout.cursor.column;
    return applied(state, { ok: true, editor: moveTo(editor, offsetAt(layout, row, goal), goal) }, context);
  }
  const stepped = step(state.history, editor, direction);
  return stepped === undefined ? unhandled(state) : { state: quiet({ ...without(state), ...stepped }), handled: true };
}

function updateSearch(state: Composer, search: Search, key: Key, context: ComposerContext): Updated {
  const next = searchByKey(state, search, key);
  const { search: _, ...rest } = state;
  if (next.kind === "searching") return { state: { ...state, search: next.search }, handled: true };
  if (next.kind === "cancelled") return { state: rest, handled: true };
  const found = quiet({ ...rest, editor: next.editor, history: next.history });
  if (next.kind === "accepted") return { state: found, handled: true };
  const after = update(found, key, context);
  return after.handled ? after : { ...after, state };
}

function verticalOf(key: Key): -1 | 1 | undefined {
  if (isPlain(key, "up") || isChord(key, "p")) return -1;
  return isPlain(key, "down") || isChord(key, "n") ? 1 : undefined;
}

function isPlain(key: Key, name: Key["name"]): boolean {
  return key.name === name && !key.ctrl && !key.alt && !key.shift;
}

function without(state: Composer): Composer {
  const { palette: _, ...rest } = state;
  return rest;
}

function quiet(state: Composer): Composer {
  const { notice: _, ...rest } = state;
  return rest;
}
