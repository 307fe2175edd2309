import type { Line } from "@sluice/view/text";

/** What is drawn now: rows from top to bottom, and where the cursor stands. */
export interface Frame {
  readonly rows: readonly Line[];
  readonly cursor: { readonly row: number; readonly column: number } | undefined;
}

export interface FrameSize {
  readonly width: number;
  readonly height: number;
}

/** A part of the frame: made for the rows it is given, and never taller. */
export interface Part {
  readonly name: string;
  /** Rows it must have to be of use; it is left out where not even these are there. */
  readonly least: number;
  /** Rows it would like to have. */
  readonly most: number;
  lines(height: number): readonly Line[];
  /** Where the cursor stands in it. */
  readonly cursor?: (height: number) => { readonly row: number; readonly column: number } | undefined;
}

/**
 * Stacks parts in the height there is. `parts` stand in the order they are drawn; `order` says who gets rows first, since
 * what a person types and decides upon matters more than what streams by.
 */
export function stack(parts: readonly Part[], order: readonly string[], height: number): Frame {
  const byImportance = [...parts].sort((one, other) => order.indexOf(one.name) - order.indexOf(other.name));
  const given = new Map<string, number>();
  let left = height;
  for (const { name, least } of byImportance) {
    if (least > left) continue;
    given.set(name, least);
    left -= least;
  }
  for (const { name, most } of byImportance) {
    const has = given.get(name);
    if (has === undefined) continue;
    const more = Math.min(left, Math.max(0, most - has));
    given.set(name, has + more);
    left -= more;
  }
  const rows: Line[] = [];
  let cursor: Frame["cursor"];
  for (const part of parts) {
    const room = given.get(part.name) ?? 0;
    if (room === 0) continue;
    const lines = part.lines(room).slice(0, room);
    const at = part.cursor?.(room);
    if (at !== undefined && at.row < lines.length) cursor = { row: rows.length + at.row, column: at.column };
    rows.push(...lines);
  }
  return { rows, cursor };
}
