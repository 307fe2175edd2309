import stringWidth from "string-width";

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
