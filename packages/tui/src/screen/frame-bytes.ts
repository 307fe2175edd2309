import stringWidth from "string-width";
import type { Cell, Painted } from "./reflow.ts";

/** An empty screen with the cursor where a frame would begin. */
export const nothingPainted: Painted = { rows: [], cursor: { row: 0, column: 0 } };

/** Starts at the second column: tmux moves rows that are erased from the first cell into its scrollback. */
export const eraseDown = "\x1b[K\x1b[C\x1b[J\r";
const eraseRow = "\x1b[K";
const plain = "\x1b[m";
// A row for a wider terminal must not wrap.
const wrapOff = "\x1b[?7l";
const wrapOn = "\x1b[?7h";
const saveCursor = "\x1b7";
const backToSaved = "\x1b8";

/** Moves up, to the first column. */
export function up(rows: number): string {
  return rows > 0 ? `\x1b[${rows}A\r` : "\r";
}

/** Unlike a line feed, this never scrolls, whatever size the terminal has when it reads this. */
function down(rows: number): string {
  return rows > 0 ? `\x1b[${rows}B\r` : "\r";
}

/** Erases the frame; the cursor is where it began. */
export function erase(painted: Painted): string {
  return up(painted.cursor.row) + eraseDown;
}

/** Prints a text after `erase`; the next frame begins below it. */
export function printed(text: string): string {
  const body = text.endsWith("\n") ? text.slice(0, -1) : text;
  return `${plain}${body.replace(/\r?\n/g, "\r\n")}${plain}\r\n`;
}

/**
 * Paints the rows that differ and leaves the cursor on the first cell, with the whole frame below it: a terminal that gets
 * lower drops rows below the cursor, and one that wraps rows leaves the cursor where the frame begins.
 */
export function repaint(painted: Painted, rows: readonly string[]): string {
  const changes = rows.length > painted.rows.length ? paint(rows) : change(painted.rows, rows);
  if (changes === "" && painted.cursor.row === 0 && painted.cursor.column === 0) return "";
  return up(painted.cursor.row) + changes;
}

/** Moves the cursor from the first cell of a frame to another one. */
export function place({ row, column }: Cell): string {
  return down(row) + (column > 0 ? `\x1b[${column}C` : "");
}

/** Scrolls blank rows into place, then paints from the lowest row up: a terminal that gets lower meanwhile drops blank rows. */
function paint(rows: readonly string[]): string {
  let bytes = `${plain}${eraseDown}${"\n".repeat(rows.length - 1)}${wrapOff}\r`;
  let current = rows.length - 1;
  for (const [row, text] of [...rows.entries()].reverse()) {
    if (text === "") continue;
    bytes += (row < current ? up(current - row) : "") + text;
    current = row;
  }
  return `${bytes}${plain}${up(current)}${wrapOn}`;
}

function change(before: readonly string[], rows: readonly string[]): string {
  let bytes = "";
  let at = 0;
  const goTo = (row: number): void => {
    bytes += down(row - at);
    at = row;
  };
  for (const [row, text] of rows.entries()) {
    if (text === before[row]) continue;
    goTo(row);
    bytes += eraseRow + text;
  }
  if (rows.length < before.length) {
    goTo(rows.length);
    bytes += eraseDown;
  }
  // Moves up would be wrong where the last row cut moves down short.
  return bytes === "" ? "" : `${plain}${wrapOff}${saveCursor}${bytes}${plain}${backToSaved}${wrapOn}`;
}

const INVERSE = "\x1b[7m";
const NOT_INVERSE = "\x1b[27m";
const ESC = "\x1b";
const BEL = "\x07";
const sequence = new RegExp(`${ESC}(?:\\[[0-9;:?]*[A-Za-z]|\\][^${BEL}${ESC}]*(?:${BEL}|${ESC}\\\\))`, "y");
const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** The row with the character at a column inverted, as terminals show a cursor; after the end of the row, a space. */
export function withCursor(row: string, column: number): string {
  let used = 0;
  let at = 0;
  while (at < row.length) {
    sequence.lastIndex = at;
    const match = sequence.exec(row);
    if (match !== null) {
      at += match[0].length;
      continue;
    }
    const [first] = graphemes.segment(row.slice(at, at + 64));
    const segment = first?.segment ?? row.charAt(at);
    used += stringWidth(segment);
    const end = at + segment.length;
    if (used > column) return row.slice(0, at) + INVERSE + segment + NOT_INVERSE + row.slice(end);
    at = end;
  }
  return `${row}${" ".repeat(column - used)}${INVERSE} ${NOT_INVERSE}`;
}
