import { stripVTControlCharacters } from "node:util";
import stringWidth from "string-width";

/** The size of a terminal, in cells. */
export interface Size {
  readonly columns: number;
  readonly rows: number;
}

/** A cell of a frame, from the upper left one. */
export interface Cell {
  readonly row: number;
  readonly column: number;
}

/** The frame on the screen, and the cursor in it. */
export interface Painted {
  readonly rows: readonly string[];
  readonly cursor: Cell;
}

/** The cursor after a terminal rewraps rows: most terminals keep it on its text, xterm.js keeps its distance from the last row. */
export type CursorRule = "with-text" | "from-bottom";

export function cursorRuleOf(env: Readonly<Record<string, string | undefined>>): CursorRule {
  return env.TERM_PROGRAM === "vscode" ? "from-bottom" : "with-text";
}

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** How many rows a terminal of this width makes of one row; a wide character is never split. */
export function rowsAt(columns: number, row: string): number {
  const width = stringWidth(row);
  if (width <= columns) return 1;
  const text = stripVTControlCharacters(row);
  if (text.length === width) return Math.ceil(width / columns);
  let rows = 1;
  let used = 0;
  for (const { segment } of graphemes.segment(text)) {
    const cells = stringWidth(segment);
    if (used + cells > columns) {
      rows += 1;
      used = 0;
    }
    used += cells;
  }
  return rows;
}

/** The position of a frame after a resize. */
export interface Reflowed {
  /** Rows from its first row down to the cursor. */
  readonly above: number;
  /** The screen row of its first row; undefined if that depends on the terminal. */
  readonly top: number | undefined;
}

/** `top` is the screen row of the frame's first row; the frame then ends on the last screen row. */
export function afterResize(
  { rows, cursor }: Painted,
  top: number | undefined,
  from: Size,
  to: Size,
  rule: CursorRule,
): Reflowed {
  const added = (row: string): number => rowsAt(to.columns, row) - 1;
  if (rule === "with-text") {
    const broken = rows.slice(0, cursor.row).reduce((sum, row) => sum + added(row), 0);
    // Only some terminals that get higher take rows back from the scrollback.
    const known = top !== undefined && to.columns === from.columns && to.rows <= from.rows;
    return {
      above: cursor.row + broken + Math.floor(cursor.column / to.columns),
      top: known ? Math.min(top, to.rows - 1) : undefined,
    };
  }

  const cursorRow = (top ?? Math.max(0, from.rows - rows.length)) + cursor.row;
  const lost = Math.max(0, from.rows - to.rows);
  // A terminal that gets lower first drops rows below the cursor, then scrolls. xterm.js that gets higher takes rows back
  // from the scrollback only if no row is below the cursor.
  const dropped = Math.min(lost, from.rows - 1 - cursorRow);
  const gained = cursorRow === from.rows - 1 ? Math.max(0, to.rows - from.rows) : 0;
  const lowest = Math.min(rows.length - 1, cursor.row + from.rows - 1 - cursorRow - dropped);
  // Rows are wrapped from the lowest up, and each new row moves the cursor down. The row that has the cursor at its turn is
  // not wrapped.
  let moved = 0;
  for (let row = lowest; row >= 0; row -= 1) {
    if (row - cursor.row !== moved) moved += added(rows[row] ?? "");
  }
  const above = cursor.row + moved;
  // Rows above the screen have been scrolled away.
  return { above, top: Math.max(0, cursorRow - (lost - dropped) + gained - above) };
}
