import type { Tokens } from "marked";
import type { Line, Span } from "../line.ts";
import { pad, widthOf, wrap } from "../width.ts";
import { inlineLines } from "./inline.ts";

const NARROWEST = 4;
/** Maximum rows of a cell. */
const TALLEST = 10;
const BETWEEN = " │ ";

type Cell = readonly Line[];

/** A table in `width` columns, with wide cells wrapped. With too many columns, each row is a line of text. */
export function tableLines(table: Tokens.Table, width: number): readonly Line[] {
  const head = table.header.map((cell) => inlineLines(cell.tokens, "strong"));
  const rows = table.rows.map((row) => row.map((cell) => inlineLines(cell.tokens, "plain")));
  const room = width - BETWEEN.length * (head.length - 1);
  if (room < head.length * NARROWEST) return [head, ...rows].flatMap((row) => asText(row, width));
  const natural = head.map((cell, at) => Math.max(1, ...[cell, ...rows.map((row) => row[at] ?? [])].map(cellWidth)));
  const widths = fit(natural, room);
  const rule = widths.map((columns) => "─".repeat(columns)).join("─┼─");
  return [
    ...rowLines(head, widths, table.align),
    [{ text: rule, style: "dim" }],
    ...rows.flatMap((row) => rowLines(row, widths, table.align)),
  ];
}

function cellWidth(cell: Cell): number {
  return Math.max(0, ...cell.map((line) => widthOf(line)));
}

/** Wide columns share the room that narrow ones leave. */
function fit(natural: readonly number[], room: number): readonly number[] {
  const widths = natural.map(() => 0);
  let left = room;
  const open = natural.map((_, at) => at).sort((a, b) => (natural[a] ?? 0) - (natural[b] ?? 0));
  for (const [done, at] of open.entries()) {
    const share = Math.floor(left / (open.length - done));
    widths[at] = Math.min(natural[at] ?? 0, share);
    left -= widths[at] ?? 0;
  }
  return widths;
}

function rowLines(row: readonly Cell[], widths: readonly number[], align: Tokens.Table["align"]): readonly Line[] {
  const cells = widths.map((width, at) => {
    const lines = (row[at] ?? []).flatMap((line) => wrap(line, width, TALLEST)).slice(0, TALLEST);
    return lines.map((line) => aligned(line, width, align[at]));
  });
  const height = Math.max(1, ...cells.map((cell) => cell.length));
  return Array.from({ length: height }, (_, y) =>
    cells.flatMap((cell, at): readonly Span[] => [
      ...(at === 0 ? [] : [{ text: BETWEEN, style: "dim" } satisfies Span]),
      ...(cell[y] ?? pad([], widths[at] ?? 0)),
    ]),
  );
}

function aligned(line: Line, width: number, side: Tokens.Table["align"][number] | undefined): Line {
  const used = widthOf(line);
  if (side === "right") return pad(line, width, "left");
  return pad(side === "center" ? pad(line, used + Math.floor((width - used) / 2), "left") : line, width);
}

function asText(row: readonly Cell[], width: number): readonly Line[] {
  const spans = row.flatMap((cell, at): readonly Span[] => [
    ...(at === 0 ? [] : [{ text: BETWEEN, style: "dim" } satisfies Span]),
    ...cell.flat(),
  ]);
  return wrap(spans, width);
}
