import { stripVTControlCharacters } from "node:util";
import stringWidth from "string-width";

/** The size of a terminal, in cells. */
export interface Size {
  readonly columns: number;
  readonly rows: number;
}

/** A cell of a frame, counted from its upper left one. */
export interface Cell {
  readonly row: number;
  readonly column: number;
}

/** What is on the screen below the last line that was printed, and the cell of it the cursor stands on. */
export interface Painted {
  readonly rows: readonly string[];
  readonly cursor: Cell;
}

/**
 * Where a terminal leaves the cursor when a new width breaks rows in two. Most move it along with the text it stood on, and
 * those that break nothing leave it there too. xterm.js, the terminal of VS Code, keeps its distance from the last row
 * instead.
 */
export type CursorRule = "with-text" | "from-bottom";

export function cursorRuleOf(env: Readonly<Record<string, string | undefined>>): CursorRule {
  return env.TERM_PROGRAM === "vscode" ? "from-bottom" : "with-text";
}

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** How many rows a terminal of this width makes of one: a wide character never lies on two. */
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

/** What is left of a frame after its terminal got another size. */
export interface Left {
  /** How many rows above the cursor it begins. */
  readonly above: number;
  /** The row of the screen on which it begins; undefined where terminals differ. */
  readonly top: number | undefined;
}

/** `top`: the row of the screen on which the frame begins. It reaches to the last one, unless `top` is undefined. */
export function afterResize(
  { rows, cursor }: Painted,
  top: number | undefined,
  from: Size,
  to: Size,
  rule: CursorRule,
): Left {
  const added = (row: string): number => rowsAt(to.columns, row) - 1;
  if (rule === "with-text") {
    const broken = rows.slice(0, cursor.row).reduce((sum, row) => sum + added(row), 0);
    // A terminal that gets higher takes rows back from the scrollback or does not.
    const known = top !== undefined && to.columns === from.columns && to.rows <= from.rows;
    return {
      above: cursor.row + broken + Math.floor(cursor.column / to.columns),
      top: known ? Math.min(top, to.rows - 1) : undefined,
    };
  }

  const at = (top ?? Math.max(0, from.rows - rows.length)) + cursor.row;
  const lost = Math.max(0, from.rows - to.rows);
  // A terminal that gets lower drops rows below the cursor before it scrolls, and this one takes rows back from the
  // scrollback, when it gets higher, only when there is none below the cursor.
  const dropped = Math.min(lost, from.rows - 1 - at);
  const won = at === from.rows - 1 ? Math.max(0, to.rows - from.rows) : 0;
  const lowest = Math.min(rows.length - 1, cursor.row + from.rows - 1 - at - dropped);
  // Rows are broken from the lowest up, and each new one moves the cursor down. The row it stands on when that is looked at
  // is not broken, whichever that is by then.
  let moved = 0;
  for (let row = lowest; row >= 0; row -= 1) {
    if (row - cursor.row !== moved) moved += added(rows[row] ?? "");
  }
  const above = cursor.row + moved;
  // What would begin above the screen has been scrolled away; what is left begins on its first row.
  return { above, top: Math.max(0, at - (lost - dropped) + won - above) };
}
