import { cleanInline, headOf, revealed, tailOf } from "./clean.ts";
import type { Line, Span, Style } from "./line.ts";
import { fitting, widthOf, wrap } from "./width.ts";

/** Marks text that a model or a tool wrote; no text of the app begins with it. */
export const BAR: Span = { text: "│ ", style: "dim" };
/** Marks a row that continues the row above, without a line break in the text. */
const CONTINUED: Span = { text: "┆ ", style: "dim" };
/** A space at the edge of a row, which would be invisible. */
const EDGE_SPACE = "␣";

const BAR_COLUMNS = 2;

/**
 * A text verbatim, in rows of at most `width` columns behind a bar: nothing is dropped, invisible characters are escaped, and
 * continued rows differ from new lines. `mark` precedes each line.
 */
export function verbatim(text: string, width: number, style: Style = "plain", mark?: Span): readonly Line[] {
  return text.split("\n").flatMap((line) => verbatimLine([{ text: line, style }], width, mark));
}

/** `verbatim` for one line in several styles. */
export function verbatimLine(
  parts: readonly { readonly text: string; readonly style: Style }[],
  width: number,
  mark?: Span,
): readonly Line[] {
  const margin = mark === undefined ? 0 : widthOf(mark.text);
  const first = mark === undefined ? [BAR] : [BAR, mark];
  const next = mark === undefined ? [CONTINUED] : [CONTINUED, { text: " ".repeat(margin) }];
  const line = parts.flatMap(({ text, style }) => revealed(text, style, Math.max(1, text.length)));
  const rows = hardRows(line, Math.max(2, width - BAR_COLUMNS - margin));
  return rows.map((row, at) => [...(at === 0 ? first : next), ...row]);
}

/** Like `verbatim`, but broken between words: for text that is not part of what is approved. */
export function quoted(text: string, width: number, style: Style = "plain"): readonly Line[] {
  const columns = Math.max(2, width - BAR_COLUMNS);
  return text.split("\n").flatMap((line) => {
    const rows = wrap(revealed(line, style, Math.max(1, line.length)), columns);
    return (rows.length === 0 ? [[]] : rows).map((row, at) => [at === 0 ? BAR : CONTINUED, ...row]);
  });
}

/** A label with quoted rows: in one row if both fit, else above them. */
export function labelled(label: string, rows: readonly Line[], width: number): readonly Line[] {
  const [only, ...more] = rows;
  const head: Span = { text: `${label} `, style: "dim" };
  if (only !== undefined && more.length === 0 && widthOf(head.text) + widthOf(only) <= width) return [[head, ...only]];
  return [...sentence(label, width, "dim"), ...rows];
}

/** A text of the app, which may contain foreign names. */
export function sentence(text: string, width: number, style: Style = "plain"): readonly Line[] {
  return wrap([{ text: cleanInline(text), style }], Math.max(2, width));
}

/** The beginning and the end of a long text, and how much is missing between them. */
export function headAndTail(text: string, most: number): string {
  if (text.length <= most) return text;
  const head = headOf(text, Math.floor((most * 2) / 3));
  const tail = tailOf(text, Math.floor(most / 3));
  return `${head}\n… ${(text.length - head.length - tail.length).toLocaleString("en")} characters are not shown here …\n${tail}`;
}

/** A line in rows of at most `columns`, broken anywhere, with the spaces at their edges visible. */
export function hardRows(line: Line, columns: number): readonly Line[] {
  const rows: Span[][] = [];
  let row: Span[] = [];
  let room = columns;
  for (const span of line) {
    let at = 0;
    while (at < span.text.length) {
      const { end, width } = fitting(span.text, at, room);
      if (end === at) {
        if (room < columns) {
          rows.push(row);
          row = [];
          room = columns;
          continue;
        }
        // Wider than a whole row: not a character of any script, so it is escaped.
        const code = span.text.codePointAt(at) ?? 0;
        rows.push([{ text: `·U+${code.toString(16).toUpperCase()}`, style: "unseen" }]);
        at += code > 0xffff ? 2 : 1;
        continue;
      }
      row.push({ ...span, text: span.text.slice(at, end) });
      room -= width;
      at = end;
    }
  }
  rows.push(row);
  return rows.map((cells, at) => edgesShown(cells, at > 0));
}

/** Makes spaces at the end of a row and at the start of a continued one visible. */
function edgesShown(row: readonly Span[], continued: boolean): Line {
  const shown = [...row];
  const last = shown.at(-1);
  if (last?.text.endsWith(" ") === true) {
    shown.splice(-1, 1, { ...last, text: last.text.slice(0, -1) }, { text: EDGE_SPACE, style: "unseen" });
  }
  const [first] = shown;
  if (continued && first?.text.startsWith(" ") === true) {
    shown.splice(0, 1, { text: EDGE_SPACE, style: "unseen" }, { ...first, text: first.text.slice(1) });
  }
  return shown.filter((span) => span.text !== "");
}
