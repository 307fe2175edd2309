import type { Line, Rows } from "@sluice/view/text";
import type { Key } from "../../composer/keys.ts";
import { findText } from "../../run/find-row.ts";

/** What a key was for: to close the viewer, to open the chosen row, nothing more, or not for the viewer. */
export type ViewerEffect = "close" | "open" | "none" | "unused";

/** A scrollable, searchable view of rows, optionally with a row to choose. */
export interface Viewer {
  readonly title: string;
  readonly rows: Rows;
  /** Whether a row can be chosen and opened. */
  readonly selectable: boolean;
  readonly top: number;
  readonly chosen: number;
  /** Whether it stays at the end while rows are added. */
  readonly follows: boolean;
  readonly search: { readonly text: string; readonly editing: boolean; readonly missed: boolean } | undefined;
  /** What other keys do here. */
  readonly hint: string;
  /** Whether its rows show a time that passes. */
  readonly ticks: boolean;
}

/** Columns and rows of a frame, or of a part of it. */
export interface FrameSize {
  readonly width: number;
  readonly height: number;
}

export interface ViewerUpdate {
  readonly viewer: Viewer;
  readonly effect: ViewerEffect;
}

export function createViewer(
  title: string,
  rows: Rows,
  options: { selectable?: boolean; atEnd?: boolean; hint?: string; ticks?: boolean } = {},
): Viewer {
  const { selectable = false, atEnd = false, hint = "", ticks = false } = options;
  return { title, rows, selectable, top: 0, chosen: 0, follows: atEnd, search: undefined, hint, ticks };
}

/** The first visible row; keeps the chosen row visible. */
export function topOf(viewer: Viewer, { width, height }: FrameSize): number {
  const last = Math.max(0, viewer.rows.count(width) - height);
  if (viewer.follows) return last;
  const top = Math.min(viewer.top, last);
  if (!viewer.selectable) return top;
  if (viewer.chosen < top) return viewer.chosen;
  return viewer.chosen >= top + height ? viewer.chosen - height + 1 : top;
}

export function updateViewer(viewer: Viewer, key: Key, size: FrameSize): ViewerUpdate {
  if (viewer.search?.editing === true) return none(updateSearch(viewer, key, size));
  const { height } = size;
  switch (key.name) {
    case "escape":
      return { viewer, effect: "close" };
    case "up":
      return none(moved(viewer, -1, size));
    case "down":
      return none(moved(viewer, 1, size));
    case "pageUp":
      return none(moved(viewer, -Math.max(1, height - 1), size));
    case "pageDown":
      return none(moved(viewer, Math.max(1, height - 1), size));
    case "home":
      return none(movedTo(viewer, 0, size));
    case "end":
      return none({ ...movedTo(viewer, viewer.rows.count(size.width) - 1, size), follows: !viewer.selectable });
    case "enter":
      return { viewer, effect: viewer.selectable ? "open" : "unused" };
    case "text":
      return typed(viewer, key, size);
    default:
      return { viewer, effect: "unused" };
  }
}

function typed(viewer: Viewer, key: Key, size: FrameSize): ViewerUpdate {
  const unused: ViewerUpdate = { viewer, effect: "unused" };
  if (key.ctrl || key.alt) return unused;
  switch (key.text) {
    case "q":
      return { viewer, effect: "close" };
    case "/":
      return viewer.rows.find === undefined
        ? unused
        : none({ ...viewer, search: { text: "", editing: true, missed: false } });
    case "n":
      return none(found(viewer, size, false));
    case "N":
      return none(found(viewer, size, true));
    default:
      return unused;
  }
}

function none(viewer: Viewer): ViewerUpdate {
  return { viewer, effect: "none" };
}

function updateSearch(viewer: Viewer, key: Key, size: FrameSize): Viewer {
  const { text = "" } = viewer.search ?? {};
  const searching = (next: string, editing = true): Viewer => ({
    ...viewer,
    search: { text: next.slice(0, 200), editing, missed: false },
  });
  switch (key.name) {
    case "escape":
      return { ...viewer, search: undefined };
    case "enter":
      return found(searching(text, false), size, false, true);
    case "backspace":
      return searching([...text].slice(0, -1).join(""));
    case "text":
    case "paste":
      return key.ctrl || key.alt ? viewer : searching(text + key.text);
    default:
      return viewer;
  }
}

function found(viewer: Viewer, size: FrameSize, back: boolean, here = false): Viewer {
  const { search, rows } = viewer;
  if (search === undefined || search.text === "" || rows.find === undefined) return viewer;
  const at = viewer.selectable ? viewer.chosen : topOf(viewer, size);
  const row = rows.find(search.text, here ? at : back ? at - 1 : at + 1, size.width, back);
  if (row === undefined) return { ...viewer, search: { ...search, missed: true } };
  return { ...movedTo(viewer, row, size), search: { ...search, missed: false } };
}

function moved(viewer: Viewer, by: number, size: FrameSize): Viewer {
  return movedTo(viewer, (viewer.selectable ? viewer.chosen : topOf(viewer, size)) + by, size);
}

function movedTo(viewer: Viewer, row: number, size: FrameSize): Viewer {
  const count = viewer.rows.count(size.width);
  const last = Math.max(0, count - 1);
  if (viewer.selectable) {
    const chosen = Math.max(0, Math.min(row, last));
    const next = { ...viewer, chosen, follows: false };
    return { ...next, top: topOf({ ...next, top: topOf(viewer, size) }, size) };
  }
  const end = Math.max(0, count - size.height);
  const top = Math.max(0, Math.min(row, end));
  // Scrolling to the end follows new rows.
  return { ...viewer, top, follows: row >= end && row > topOf(viewer, size) };
}

/** Rows that do not change, laid out once per width. */
export function fixedRows(make: (width: number) => readonly Line[]): Rows {
  let cached: { readonly width: number; readonly lines: readonly Line[] } | undefined;
  const linesAt = (width: number): readonly Line[] => {
    if (cached?.width !== width) cached = { width, lines: make(width) };
    return cached.lines;
  };
  return {
    count: (width) => linesAt(width).length,
    slice: (from, to, width) => linesAt(width).slice(from, to),
    find: (text, from, width, back) => findText(linesAt(width), text, from, back),
  };
}
