import type { Line } from "@sluice/view/text";

/** Rows from top to bottom, and the cursor. */
export interface Frame {
  readonly rows: readonly Line[];
  readonly cursor: { readonly row: number; readonly column: number } | undefined;
}

/** A part of the frame, laid out for the rows it gets. */
export interface Part {
  readonly name: string;
  /** Minimum rows; with fewer, the part is omitted. */
  readonly least: number;
  /** Maximum rows. */
  readonly most: number;
  lines(height: number): readonly Line[];
  readonly cursor?: (height: number) => { readonly row: number; readonly column: number } | undefined;
}

/** Stacks `parts` from top to bottom; the parts first in `order` get rows first. */
export function stack(parts: readonly Part[], order: readonly string[], height: number): Frame {
  const byImportance = [...parts].sort((one, other) => order.indexOf(one.name) - order.indexOf(other.name));
  const heights = new Map<string, number>();
  let free = height;
  for (const { name, least } of byImportance) {
    if (least > free) continue;
    heights.set(name, least);
    free -= least;
  }
  for (const { name, most } of byImportance) {
    const current = heights.get(name);
    if (current === undefined) continue;
    const more = Math.min(free, Math.max(0, most - current));
    heights.set(name, current + more);
    free -= more;
  }
  const rows: Line[] = [];
  let cursor: Frame["cursor"];
  for (const part of parts) {
    const room = heights.get(part.name) ?? 0;
    if (room === 0) continue;
    const lines = part.lines(room).slice(0, room);
    const cell = part.cursor?.(room);
    if (cell !== undefined && cell.row < lines.length) cursor = { row: rows.length + cell.row, column: cell.column };
    rows.push(...lines);
  }
  return { rows, cursor };
}
