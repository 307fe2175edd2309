import type { Line } from "./line.ts";

/** The share of the shown rows for the beginning. */
const HEAD_SHARE = 2 / 3;

/**
 * At most `max` lines (at least 1): the beginning, a note, and the end. `key` names what shows the rest; `unshown` lines, which
 * were never made, count as left out.
 */
export function fold(lines: readonly Line[], max: number, key?: string, unshown = 0): readonly Line[] {
  if (lines.length <= max && unshown === 0) return lines;
  const room = Math.max(0, max - 1);
  const tail = unshown > 0 ? 0 : Math.floor(room * (1 - HEAD_SHARE));
  const head = Math.min(lines.length, room - tail);
  const left = lines.length - head - tail + unshown;
  return [...lines.slice(0, head), moreLine(left, key), ...(tail === 0 ? [] : lines.slice(-tail))];
}

export function lineEnds(text: string): number {
  let ends = 0;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) ends += 1;
  return ends;
}

/** ` … 12 characters more`; nothing if there are none. */
export function moreCharacters(left: number): Line {
  return left === 0 ? [] : [{ text: ` … ${left} characters more`, style: "dim" }];
}

/** `… 12 lines more (Ctrl+O)` */
export function moreLine(count: number, key?: string): Line {
  const how = key === undefined ? "" : ` (${key})`;
  return [{ text: `… ${count} ${count === 1 ? "line" : "lines"} more${how}`, style: "dim" }];
}
