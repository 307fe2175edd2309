import type { Line } from "./line.ts";

/** Rows that can be looked through. They may grow at the end while somebody looks. */
export interface Rows {
  count(width: number): number;
  /** Rows from `from` up to, not with, `to`. */
  slice(from: number, to: number, width: number): readonly Line[];
  /** The first row from `from` on, or before it where `back`, that holds the text; upper and lower case are the same. */
  find?(text: string, from: number, width: number, back: boolean): number | undefined;
}
