import { clean, headOf, tailOf } from "./clean.ts";
import { lineEnds, moreLine } from "./fold.ts";
import type { Line } from "./line.ts";
import { wrap } from "./width.ts";

/** Rows of one line of the text; further characters are only counted. */
const MOST_ROWS = 4;
/** UTF-16 units of the end that are read. */
const LONGEST_END = 100_000;

/** The beginning and the end of a text in at most `most` rows of `width` columns, and the number of lines between them. */
export function textRows(text: string, width: number, most: number): readonly Line[] {
  const room = Math.max(1, most - 1);
  const whole = text.replace(/\n$/, "");
  const first = whole.split("\n", room + 1).map((line) => lineRows(line, width));
  const rows = first.flat();
  if (first.length <= room && rows.length <= room) return rows;
  const tailRoom = Math.floor(room / 3);
  const lastLines = tailRoom === 0 ? [] : tailOf(whole, LONGEST_END).split("\n").slice(-tailRoom);
  const last = lastLines.map((line) => lineRows(line, width)).reverse();
  const [begun, ended] = [fitting(first, room - tailRoom), fitting(last, tailRoom)];
  // Of a first line that is too long, a part is shown.
  const head = begun === 0 ? rows.slice(0, room - tailRoom) : first.slice(0, begun).flat();
  const tail = ended === 0 ? (last[0] ?? []).slice(-tailRoom) : last.slice(0, ended).reverse().flat();
  return [...head, moreLine(Math.max(1, lineEnds(whole) + 1 - begun - ended)), ...tail];
}

/** How many of the lines have room together. */
function fitting(lines: readonly (readonly Line[])[], room: number): number {
  let count = 0;
  for (let left = room; count < lines.length; count += 1) {
    left -= lines[count]?.length ?? 0;
    if (left < 0) break;
  }
  return count;
}

function lineRows(line: string, width: number): readonly Line[] {
  const shown = headOf(line, width * MOST_ROWS);
  const rows = clean(shown)
    .split("\n")
    .flatMap((text) => wrap([{ text }], width));
  const left = line.length - shown.length;
  return left === 0 ? rows : [...rows, ...wrap([{ text: `… ${left} characters more`, style: "dim" }], width)];
}
