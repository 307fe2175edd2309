import stringWidth from "string-width";
import type { Cell, Painted } from "./reflow.ts";

/** Nothing is painted, and the cursor stands where a frame would begin. */
export const nothingPainted: Painted = { rows: [], cursor: { row: 0, column: 0 } };

/** From the second column on: tmux keeps what is erased from the first cell of the screen in its scrollback. */
export const eraseDown = "\x1b[K\x1b[C\x1b[J\r";
const eraseRow = "\x1b[K";
const plain = "\x1b[m";
// Rows end where the terminal ends: one that was made for a wider terminal must not become two.
const wrapOff = "\x1b[?7l";
const wrapOn = "\x1b[?7h";
const saveCursor = "\x1b7";
const backToSaved = "\x1b8";

/** Moves up; to the first column too. */
export function up(rows: number): string {
  return rows > 0 ? `\x1b[${rows}A\r` : "\r";
}

/** Unlike a line feed this never scrolls, whatever size the terminal has by the time it reads this. */
function down(rows: number): string {
  return rows > 0 ? `\x1b[${rows}B\r` : "\r";
}

/** Takes the frame away. The cursor is where it began. */
export function erase(painted: Painted): string {
  return up(painted.cursor.row) + eraseDown;
}

/** Where a frame begins after `erase`, leaves the lines of a text, and goes to where the next frame begins. */
export function printed(text: string): string {
  const body = text.endsWith("\n") ? text.slice(0, -1) : text;
  return `${plain}${body.replace(/\r?\n/g, "\r\n")}${plain}\r\n`;
}

/**
 * Paints a frame over another and leaves the cursor on the first cell, so that everything of the frame is below it: a
 * terminal that gets lower drops what is below the cursor, and one that breaks rows leaves the cursor where the frame
 * begins. Rows that are the same are not written again. Nothing when both are the same.
 */
export function repaint(painted: Painted, rows: readonly string[]): string {
  const changes = rows.length > painted.rows.length ? paint(rows) : change(painted.rows, rows);
  if (changes === "" && painted.cursor.row === 0 && painted.cursor.column === 0) return "";
  return up(painted.cursor.row) + changes;
}

/** Places the cursor on a cell of the frame that was just painted. */
export function place({ row, column }: Cell): string {
  return down(row) + (column > 0 ? `\x1b[${column}C` : "");
}

/**
 * From the lowest row up, after making room by scrolling with nothing on them: where a terminal gets lower in the middle of
 * this, only blank rows can scroll away.
 */
function paint(rows: readonly string[]): string {
  let bytes = `${plain}${eraseDown}${"\n".repeat(rows.length - 1)}${wrapOff}\r`;
  let at = rows.length - 1;
  for (const [row, text] of [...rows.entries()].reverse()) {
    if (text === "") continue;
    bytes += (row < at ? up(at - row) : "") + text;
    at = row;
  }
  return `${bytes}${plain}${up(at)}${wrapOn}`;
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
  // Back by the saved place: moves that the last row cut short would not lead back.
  return bytes === "" ? "" : `${plain}${wrapOff}${saveCursor}${bytes}${plain}${backToSaved}${wrapOn}`;
}

const INVERSE = "\x1b[7m";
const NOT_INVERSE = "\x1b[27m";
const ESC = "\x1b";
const BEL = "\x07";
const sequence = new RegExp(`${ESC}(?:\\[[0-9;:?]*[A-Za-z]|\\][^${BEL}${ESC}]*(?:${BEL}|${ESC}\\\\))`, "y");
const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** The row with the character at a column inverted, as terminals show a cursor. After the end of the row that is a blank. */
export function withCursor(row: string, column: number): string {
  let used = 0;
  let at = 0;
  while (at < row.length) {
    sequence.lastIndex = at;
    const passed = sequence.exec(row);
    if (passed !== null) {
      at += passed[0].length;
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
