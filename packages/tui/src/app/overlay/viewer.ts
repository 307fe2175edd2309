import type { Line, Rows } from "@sluice/view/text";
import type { Key } from "../keys.ts";

export type ViewerEffect =
  | { readonly kind: "none" }
  | { readonly kind: "close" }
  /** Enter on a row. */
  | { readonly kind: "open"; readonly row: number }
  /** A key the viewer has no use for, such as the arrows that switch to the next stage. */
  | { readonly kind: "unused" };

/** A window over rows: scrolled, searched, and where its rows can be opened, with a chosen one. */
export interface Viewer {
  readonly title: string;
  readonly rows: Rows;
  /** Whether a row is chosen and can be opened. */
  readonly selectable: boolean;
  readonly top: number;
  readonly chosen: number;
  /** Shows the end, also when more comes. */
  readonly follows: boolean;
  readonly search: { readonly text: string; readonly editing: boolean; readonly missed: boolean } | undefined;
  /** What the keys do here, beside moving. */
  readonly hint: string;
}

export interface ViewerSize {
  readonly width: number;
  /** Rows of the content. */
  readonly height: number;
}

export function createViewer(
  title: string,
  rows: Rows,
  { selectable = false, atEnd = false, hint = "" }: { selectable?: boolean; atEnd?: boolean; hint?: string } = {},
): Viewer {
  return { title, rows, selectable, top: 0, chosen: 0, follows: atEnd, search: undefined, hint };
}

/** The first row shown: never past the end, and the chosen row in sight. */
export function topOf(viewer: Viewer, { width, height }: ViewerSize): number {
  const last = Math.max(0, viewer.rows.count(width) - height);
  if (viewer.follows) return last;
  const top = Math.min(viewer.top, last);
  if (!viewer.selectable) return top;
  if (viewer.chosen < top) return viewer.chosen;
  return viewer.chosen >= top + height ? viewer.chosen - height + 1 : top;
}

export function updateViewer(
  viewer: Viewer,
  key: Key,
  size: ViewerSize,
): { readonly viewer: Viewer; readonly effect: ViewerEffect } {
  const none = (next: Viewer): { viewer: Viewer; effect: ViewerEffect } => ({ viewer: next, effect: { kind: "none" } });
  if (viewer.search?.editing === true) return none(updateSearch(viewer, key, size));
  const { height } = size;
  switch (key.name) {
    case "escape":
      return { viewer, effect: { kind: "close" } };
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
      return viewer.selectable
        ? { viewer, effect: { kind: "open", row: viewer.chosen } }
        : { viewer, effect: { kind: "unused" } };
    case "text":
      return typed(viewer, key, size);
    default:
      return { viewer, effect: { kind: "unused" } };
  }
}

function typed(viewer: Viewer, key: Key, size: ViewerSize): { viewer: Viewer; effect: ViewerEffect } {
  if (key.ctrl || key.alt) return { viewer, effect: { kind: "unused" } };
  switch (key.text) {
    case "q":
      return { viewer, effect: { kind: "close" } };
    case "/":
      return viewer.rows.find === undefined
        ? { viewer, effect: { kind: "unused" } }
        : { viewer: { ...viewer, search: { text: "", editing: true, missed: false } }, effect: { kind: "none" } };
    case "n":
      return { viewer: found(viewer, size, false), effect: { kind: "none" } };
    case "N":
      return { viewer: found(viewer, size, true), effect: { kind: "none" } };
    default:
      return { viewer, effect: { kind: "unused" } };
  }
}

function updateSearch(viewer: Viewer, key: Key, size: ViewerSize): Viewer {
  const { text = "" } = viewer.search ?? {};
  switch (key.name) {
    case "escape":
      return { ...viewer, search: undefined };
    case "enter":
      return found({ ...viewer, search: { text, editing: false, missed: false } }, size, false, true);
    case "backspace":
      return { ...viewer, search: { text: [...text].slice(0, -1).join(""), editing: true, missed: false } };
    case "text":
    case "paste":
      return key.ctrl || key.alt
        ? viewer
        : { ...viewer, search: { text: (text + key.text).slice(0, 200), editing: true, missed: false } };
    default:
      return viewer;
  }
}

function found(viewer: Viewer, size: ViewerSize, back: boolean, here = false): Viewer {
  const { search, rows } = viewer;
  if (search === undefined || search.text === "" || rows.find === undefined) return viewer;
  const at = viewer.selectable ? viewer.chosen : topOf(viewer, size);
  const row = rows.find(search.text, here ? at : back ? at - 1 : at + 1, size.width, back);
  if (row === undefined) return { ...viewer, search: { ...search, missed: true } };
  return { ...movedTo(viewer, row, size), search: { ...search, missed: false } };
}

function moved(viewer: Viewer, by: number, size: ViewerSize): Viewer {
  return movedTo(viewer, (viewer.selectable ? viewer.chosen : topOf(viewer, size)) + by, size);
}

function movedTo(viewer: Viewer, row: number, size: ViewerSize): Viewer {
  const count = viewer.rows.count(size.width);
  const last = Math.max(0, count - 1);
  if (viewer.selectable) {
    const chosen = Math.max(0, Math.min(row, last));
    const next = { ...viewer, chosen, follows: false };
    return { ...next, top: topOf({ ...next, top: topOf(viewer, size) }, size) };
  }
  const end = Math.max(0, count - size.height);
  const top = Math.max(0, Math.min(row, end));
  // Whoever goes to the end sees what comes next, too.
  return { ...viewer, top, follows: row >= end && row > topOf(viewer, size) };
}

/** Rows that are there as they are, made once a width. */
export function fixedRows(make: (width: number) => readonly Line[]): Rows {
  let made: { readonly width: number; readonly lines: readonly Line[] } | undefined;
  const linesAt = (width: number): readonly Line[] => {
    if (made?.width !== width) made = { width, lines: make(width) };
    return made.lines;
  };
  return {
    count: (width) => linesAt(width).length,
    slice: (from, to, width) => linesAt(width).slice(from, to),
    find: (text, from, width, back) => {
      const lines = linesAt(width);
      const wanted = text.toLowerCase();
      const textOf = (line: Line | undefined): string => line?.map((span) => span.text).join("") ?? "";
      const holds = (line: Line | undefined): boolean => textOf(line).toLowerCase().includes(wanted);
      if (back) {
        for (let row = from; row >= 0; row -= 1) if (holds(lines[row])) return row;
      } else {
        for (let row = Math.max(0, from); row < lines.length; row += 1) if (holds(lines[row])) return row;
      }
      return undefined;
    },
  };
}
