import type { Line } from "./line.ts";
import { pad, widthOf } from "./width.ts";

/** Rows with aligned columns. */
export function table(rows: readonly (readonly string[])[]): readonly string[] {
  return columns(rows.map((row) => row.map((text) => [{ text }]))).map((line) =>
    line
      .map(({ text }) => text)
      .join("")
      .trimEnd(),
  );
}

/** Rows with aligned columns: `texts` columns of text, the others numbers. A text in the last column is not padded. */
export function columns(rows: readonly (readonly Line[])[], texts: number = Number.POSITIVE_INFINITY): readonly Line[] {
  const isText = (at: number): boolean => at < texts;
  const widths: number[] = [];
  for (const row of rows) for (const [at, cell] of row.entries()) widths[at] = Math.max(widths[at] ?? 0, widthOf(cell));
  return rows.map((row) =>
    row.flatMap((cell, at) => [
      ...(at === 0 ? [] : [{ text: "  " }]),
      ...(isText(at) && at === row.length - 1 ? cell : pad(cell, widths[at] ?? 0, isText(at) ? "right" : "left")),
    ]),
  );
}
