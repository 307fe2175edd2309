import { lineEnds, moreLine } from "../fold.ts";
import type { Line } from "../line.ts";
import { cut, wrap } from "../width.ts";
import { MarkdownBlocks, type Piece } from "./blocks.ts";
import { codeHead, codeLines, sourceLines } from "./render.ts";

/** Default maximum lines of a text, and of the unfinished part of a stream. */
const MOST_LINES = 2_000;
const MOST_REST = 40;
/** UTF-16 units of text per column, markup included; text after that is not read. */
const UNITS_A_COLUMN = 8;
const LEAST_READ = 64_000;

/** A model's Markdown as rows of at most `width` columns; beyond `maxLines` the approximate number of further lines. */
export function markdown(text: string, width: number, maxLines = MOST_LINES): readonly Line[] {
  const blocks = new MarkdownBlocks();
  const read = text.slice(0, Math.max(LEAST_READ, maxLines * width * UNITS_A_COLUMN));
  const lines: Line[] = [];
  for (const pieces of [blocks.push(read), blocks.rest()])
    for (const piece of pieces) {
      if (lines.length > maxLines) break;
      lines.push(...pieceLines(piece, width, lines.length === 0));
    }
  if (lines.length <= maxLines && read.length === text.length) return lines;
  const kept = lines.slice(0, Math.max(0, maxLines - 1));
  const all = lineEnds(text) + (text.endsWith("\n") ? 0 : 1);
  const left = lines.length - kept.length + Math.max(0, all - blocks.lineCount);
  return [...kept, cut(moreLine(Math.max(1, left)), Math.max(2, width))];
}

export interface MarkdownStream {
  /** Appends text; returns the rows that became final. */
  push(delta: string): readonly Line[];
  /** The last `max` rows of the unfinished part. */
  rest(max?: number): readonly Line[];
}

/**
 * Streamed Markdown. The rows of all `push` calls and of `rest` are those of `markdown` for the whole text. A row is final at the
 * end of its block, in a code block at the end of its line.
 */
export function createMarkdownStream(width: number): MarkdownStream {
  const blocks = new MarkdownBlocks();
  let isEmpty = true;
  const rows = (pieces: Iterable<Piece>): readonly Line[] => {
    const lines: Line[] = [];
    for (const piece of pieces) lines.push(...pieceLines(piece, width, isEmpty && lines.length === 0));
    return lines;
  };
  return {
    push(delta) {
      const lines = rows(blocks.push(delta));
      isEmpty &&= lines.length === 0;
      return lines;
    },
    rest(max = MOST_REST) {
      const lines = rows(blocks.rest());
      if (lines.length <= max) return lines;
      const kept = lines.slice(lines.length - Math.max(0, max - 1));
      const note = `… ${lines.length - kept.length} lines above`;
      return [...wrap([{ text: note, style: "dim" }], width, 1), ...kept];
    },
  };
}

/** The rows of a piece. No blank line precedes the first rows of a text, or a block without rows. */
function pieceLines(piece: Piece, columns: number, isFirst: boolean): readonly Line[] {
  const width = Math.max(2, columns);
  if (piece.kind === "code") return codeLines(piece.text, width);
  const lines = piece.kind === "fence" ? codeHead(piece.language, width) : sourceLines(piece.text, width);
  const hasGap = !isFirst && (piece.kind === "fence" || (!piece.joined && lines.length > 0));
  return hasGap ? [[], ...lines] : lines;
}
