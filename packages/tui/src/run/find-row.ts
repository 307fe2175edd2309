import type { Line } from "@sluice/view/text";

/** The index of the first matching row from `from` on, or with `back` of the last one up to it. */
export function findRow<T>(
  rows: readonly T[],
  matches: (row: T) => boolean,
  from: number,
  back: boolean,
): number | undefined {
  const isWanted = (row: T, index: number): boolean => (back ? index <= from : index >= from) && matches(row);
  const index = back ? rows.findLastIndex(isWanted) : rows.findIndex(isWanted);
  return index === -1 ? undefined : index;
}

/** The next or previous row that contains a text, in any case. */
export function findText(rows: readonly Line[], text: string, from: number, back: boolean): number | undefined {
  const wanted = text.toLowerCase();
  const textOf = (row: Line): string => row.map((part) => part.text).join("");
  return findRow(rows, (row) => textOf(row).toLowerCase().includes(wanted), from, back);
}
