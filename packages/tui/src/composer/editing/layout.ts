import { type Cell, cellOf, labelCell } from "./cells.ts";
import { boundaryAt, type FoldedText, graphemesOf, isPaste, lineEnd, lineStart, pasteLabel } from "./pastes.ts";

/** A cell with its range of the text. */
export interface PlacedCell extends Cell {
  readonly start: number;
  readonly end: number;
}

/** One row of a wrapped text. */
export interface Row {
  readonly start: number;
  /** Exclusive; a line break is not part of its row. */
  readonly end: number;
  readonly cells: readonly PlacedCell[];
}

export interface Layout {
  readonly rows: readonly Row[];
  readonly cursor: { readonly row: number; readonly column: number };
}

/** Characters that are laid out; of longer texts, a window around the cursor. */
const MAX_WHOLE = 8_192;
const STEP = 2_048;
const ASCII = /^[\x20-\x7e]*$/;

/** A text in rows of at most `columns`, broken after blanks if possible. The cursor can be one column after the last. */
export function layOut(folded: FoldedText, cursor: number, columns: number): Layout {
  const room = Math.max(1, columns);
  const { text } = folded;
  const { start, end } = windowOf(text, cursor);
  const rows: Row[] = [];
  let at = start;
  for (;;) {
    const until = Math.min(end, lineEnd(text, at));
    rows.push(...wrap(text, cellsOf(folded, at, until, room), at, until, room));
    if (until >= end) break;
    at = until + 1;
  }
  return { rows, cursor: positionOf(rows, cursor) };
}

/** The position of an offset; at a wrap, on the row that begins there. */
function positionOf(rows: readonly Row[], offset: number): Layout["cursor"] {
  const row = Math.max(
    0,
    rows.findLastIndex((one) => one.start <= offset),
  );
  let column = 0;
  for (const cell of rows[row]?.cells ?? []) if (cell.end <= offset) column += cell.width;
  return { row, column };
}

/** The offset at a column of a row, or the last one before it. */
export function offsetAt(layout: Layout, row: number, column: number): number {
  const found = layout.rows[row];
  if (found === undefined) return 0;
  let width = 0;
  for (const cell of found.cells) {
    width += cell.width;
    if (width > column) return cell.start;
  }
  const wrapped = layout.rows[row + 1]?.start === found.end;
  const last = found.cells.at(-1);
  // The end of a wrapped row is the beginning of the next one.
  return wrapped && last !== undefined ? last.start : found.end;
}

function cellsOf({ text, pastes }: FoldedText, start: number, end: number, room: number): readonly PlacedCell[] {
  const cells: PlacedCell[] = [];
  const line = text.slice(start, end);
  let at = start;
  for (const grapheme of ASCII.test(line) ? line : graphemesOf(line)) {
    const cell = isPaste(grapheme) ? labelCell(pasteLabel(grapheme, pastes), room) : cellOf(grapheme, room);
    cells.push({ ...cell, start: at, end: at + grapheme.length });
    at += grapheme.length;
  }
  return cells;
}

function wrap(text: string, cells: readonly PlacedCell[], start: number, end: number, room: number): Row[] {
  const rows: Row[] = [];
  let from = 0;
  let width = 0;
  let breakAt = 0;
  for (let index = 0; index < cells.length; index += 1) {
    const cell = cells[index];
    if (cell === undefined) continue;
    if (width + cell.width > room && index > from) {
      const until = breakAt > from ? breakAt : index;
      rows.push(rowOf(cells.slice(from, until)));
      from = until;
      width = cells.slice(from, index).reduce((sum, one) => sum + one.width, 0);
      // The carried cells and this one may be too wide together.
      if (width + cell.width > room && index > from) {
        rows.push(rowOf(cells.slice(from, index)));
        from = index;
        width = 0;
      }
    }
    width += cell.width;
    if (text[cell.start] === " ") breakAt = index + 1;
  }
  const last = cells.slice(from);
  rows.push({ start: last[0]?.start ?? start, end, cells: last });
  return rows;
}

function rowOf(cells: readonly PlacedCell[]): Row {
  return { start: cells[0]?.start ?? 0, end: cells.at(-1)?.end ?? 0, cells };
}

/** The part of a long text that is laid out: from the start of a line, or from an offset that is stable near the cursor. */
function windowOf(text: string, cursor: number): { readonly start: number; readonly end: number } {
  const { length } = text;
  if (length <= MAX_WHOLE) return { start: 0, end: length };
  const before = Math.max(0, cursor - 2 * STEP);
  const line = lineStart(text, before);
  const start = line > before - 2 * STEP ? line : boundaryAt(text, before - (before % STEP));
  return { start, end: boundaryAt(text, cursor + 2 * STEP) };
}
