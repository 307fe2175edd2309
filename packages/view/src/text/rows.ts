import type { Line } from "./line.ts";

/** Rows of a viewer; more can be appended while it is open. */
export interface Rows {
  count(width: number): number;
  /** Rows from `from` to `to`, exclusive. */
  slice(from: number, to: number, width: number): readonly Line[];
  /** The first row from `from`, or with `back` the last one before it, that contains the text in any case. */
  find?(text: string, from: number, width: number, back: boolean): number | undefined;
}
