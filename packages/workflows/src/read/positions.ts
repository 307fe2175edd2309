import type { Position } from "../diagnostic.ts";

/** Turns offsets of a text into lines and columns. */
export interface Positions {
  /** The place of the characters from one offset to another, cut at the end of the line. */
  between(start: number, end: number): Position;
}

export function createPositions(text: string): Positions {
  const starts = [0];
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return {
    between: (start, end) => {
      const offset = Math.max(0, Math.min(start, text.length));
      const line = lineOf(starts, offset);
      const lineStart = starts[line] ?? 0;
      let lineEnd = (starts[line + 1] ?? text.length + 1) - 1;
      if (text[lineEnd - 1] === "\r") lineEnd -= 1;
      const length = Math.max(1, Math.min(end, lineEnd) - offset);
      return { line: line + 1, column: offset - lineStart + 1, length };
    },
  };
}

/** The index of the last line that starts at or before an offset. */
function lineOf(starts: readonly number[], offset: number): number {
  let low = 0;
  let high = starts.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((starts[middle] ?? 0) <= offset) low = middle;
    else high = middle - 1;
  }
  return low;
}
