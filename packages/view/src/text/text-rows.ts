import { clean, headOf } from "./clean.ts";
import { moreLine } from "./fold.ts";
import type { Line } from "./line.ts";
import { wrap } from "./width.ts";

/** Rows of one line of the text; further characters are only counted. */
const MOST_ROWS = 4;

/** The beginning and the end of a text in at most `most` rows of `width` columns, and the number of lines between them. */
export function textRows(text: string, width: number, most: number): readonly Line[] {
  const room = Math.max(1, most - 1);
  const whole = text.replace(/\n$/, "");
  const head = fill(linesFrom(whole), width, room);
  if (head.complete) return head.rows;
  const tailRoom = Math.floor(room / 3);
  const begin = fill(linesFrom(whole), width, room - tailRoom);
  const end = fill(linesBefore(whole), width, tailRoom, true);
  const left = Math.max(1, countLines(whole) - begin.lines - end.lines);
  return [...begin.rows, moreLine(left), ...end.rows];
}

interface Filled {
  readonly rows: readonly Line[];
  /** Lines shown in full. */
  readonly lines: number;
  readonly complete: boolean;
}

function fill(lines: Iterable<string>, width: number, room: number, backwards = false): Filled {
  let rows: readonly Line[] = [];
  let count = 0;
  for (const line of lines) {
    const added = lineRows(line, width);
    if (rows.length + added.length > room) {
      // Of a first line that is too long, a part is shown.
      const part = backwards ? added.slice(added.length - room) : added.slice(0, room);
      return { rows: count === 0 ? part : rows, lines: count, complete: false };
    }
    rows = backwards ? [...added, ...rows] : [...rows, ...added];
    count += 1;
  }
  return { rows, lines: count, complete: true };
}

function lineRows(line: string, width: number): readonly Line[] {
  const shown = headOf(line, width * MOST_ROWS);
  const rows = clean(shown)
    .split("\n")
    .flatMap((text) => wrap([{ text }], width));
  const left = line.length - shown.length;
  return left === 0 ? rows : [...rows, ...wrap([{ text: `… ${left} characters more`, style: "dim" }], width)];
}

function* linesFrom(text: string): Generator<string> {
  for (let at = 0; ; ) {
    const end = text.indexOf("\n", at);
    yield text.slice(at, end === -1 ? text.length : end);
    if (end === -1) return;
    at = end + 1;
  }
}

function* linesBefore(text: string): Generator<string> {
  for (let end = text.length; ; ) {
    const at = end === 0 ? -1 : text.lastIndexOf("\n", end - 1);
    yield text.slice(at + 1, end);
    if (at === -1) return;
    end = at;
  }
}

function countLines(text: string): number {
  let count = 1;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) count += 1;
  return count;
}
