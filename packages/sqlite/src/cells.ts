import type { SQLOutputValue } from "node:sqlite";
import { damaged } from "./faults.ts";

/** A row as node:sqlite returns it. */
export type Row = Record<string, SQLOutputValue>;

export function text(row: Row, column: string): string {
  const value = row[column];
  if (typeof value === "string") return value;
  throw wrongCell(column);
}

export function integer(row: Row, column: string): number {
  const value = row[column];
  if (typeof value === "number") return value;
  throw wrongCell(column);
}

/** Undefined for NULL. */
export function textOrNone(row: Row, column: string): string | undefined {
  return row[column] === null ? undefined : text(row, column);
}

/** One of the words a column may hold. */
export function word<W extends string>(row: Row, column: string, words: readonly W[]): W {
  const found = words.find((each) => each === row[column]);
  if (found !== undefined) return found;
  throw wrongCell(column);
}

function wrongCell(column: string): Error {
  return damaged("journal.db", `column ${column} holds what Sluice never wrote`);
}
