import { boundaryAt, foldLabel, foldStartingAt, graphemesOf, type Piece, stretchAround } from "./buffer.ts";
import { type Cell, cellOf, labelCell } from "./cells.ts";

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

/** Unfolded characters that are laid out; of longer texts, a window around the cursor. */
const MAX_WHOLE = 8_192;
const STEP = 2_048;
const ASCII = /^[\x20-\x7e]*$/;

/** A text in rows of at most `columns`, broken after blanks if possible. The cursor can be one column after the last. */
export function layOut(piece: Piece, cursor: number, columns: number): Layout {
  const room = Math.max(1, columns);
  const { start, end } = windowOf(piece, cursor);
  const rows: Row[] = [];
  let at = start;
  for (;;) {
    const line = unitsOfLine(piece, at, end, room);
    rows.push(...wrap(piece, line.cells, at, line.end, room));
    if (line.end >= end) break;
    at = line.end + 1;
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

function unitsOfLine(
  piece: Piece,
  start: number,
  end: number,
  room: number,
): { readonly cells: readonly PlacedCell[]; readonly end: number } {
  const cells: PlacedCell[] = [];
  let at = start;
  while (at < end) {
    const fold = foldStartingAt(piece.folds, at);
    if (fold !== undefined) {
      cells.push({ ...labelCell(foldLabel(piece.text, fold), room), start: at, end: fold.end });
      at = fold.end;
      continue;
    }
    if (piece.text[at] === "\n") return { cells, end: at };
    const stretch = piece.text.slice(at, Math.min(end, stretchAround(piece, at).end));
    for (const grapheme of ASCII.test(stretch) ? stretch : graphemesOf(stretch)) {
      cells.push({ ...cellOf(grapheme, room), start: at, end: at + grapheme.length });
      at += grapheme.length;
    }
  }
  return { cells, end: at };
}

function wrap(piece: Piece, cells: readonly PlacedCell[], start: number, end: number, room: number): Row[] {
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
    if (piece.text[cell.start] === " ") breakAt = index + 1;
  }
  const last = cells.slice(from);
  rows.push({ start: last[0]?.start ?? start, end, cells: last });
  return rows;
}

function rowOf(cells: readonly PlacedCell[]): Row {
  return { start: cells[0]?.start ?? 0, end: cells.at(-1)?.end ?? 0, cells };
}

/** The part of a long text that is laid out: from the start of a line, or from an offset that is stable near the cursor. */
function windowOf(piece: Piece, cursor: number): { readonly start: number; readonly end: number } {
  const folded = piece.folds.reduce((sum, fold) => sum + fold.end - fold.start, 0);
  const { length } = piece.text;
  if (length - folded <= MAX_WHOLE) return { start: 0, end: length };
  return { start: windowStart(piece, cursor), end: boundaryAt(piece, Math.min(length, cursor + 2 * STEP)) };
}

function windowStart(piece: Piece, cursor: number): number {
  const before = cursor - 2 * STEP;
  if (before <= 0) return 0;
  const fold = piece.folds.find((one) => one.start <= before && before < one.end);
  if (fold !== undefined) return fold.start;
  const line = piece.text.lastIndexOf("\n", before) + 1;
  const earliest = before - 2 * STEP;
  if (line > earliest) {
    const broken = piece.folds.find((one) => one.start < line && line <= one.end);
    return broken?.end ?? line;
  }
  return boundaryAt(piece, before - (before % STEP));
}
