import { moreLine } from "../fold.ts";
import type { Line } from "../line.ts";
import { cut, wrap } from "../width.ts";
import { MarkdownBlocks, type Piece } from "./blocks.ts";
import { codeHead, codeLines, plainLines, sourceLines } from "./render.ts";

/** Default maximum lines of a text, and of the unfinished part of a stream. */
const MOST_LINES = 2_000;
const MOST_REST = 40;
/** UTF-16 units of text per column, markup included. */
const UNITS_A_COLUMN = 8;
/** UTF-16 units parsed at once, so that text after the last shown line is not read. */
const SLICE = 64_000;

/** A model's Markdown as rows of at most `width` columns; beyond `maxLines` the approximate number of further lines. */
export function markdown(text: string, width: number, maxLines = MOST_LINES): readonly Line[] {
  const blocks = new MarkdownBlocks();
  const page = new Page(width);
  const lines: Line[] = [];
  const most = Math.max(SLICE, maxLines * width * UNITS_A_COLUMN);
  let from = 0;
  while (from < Math.min(text.length, most) && lines.length <= maxLines) {
    const slice = text.slice(from, from + SLICE);
    from += slice.length;
    for (const piece of blocks.push(slice)) {
      lines.push(...page.add(piece));
      if (lines.length > maxLines) break;
    }
  }
  if (lines.length <= maxLines) for (const piece of blocks.rest()) lines.push(...page.add(piece));
  if (lines.length <= maxLines && from >= text.length) return lines;
  const kept = lines.slice(0, Math.max(0, maxLines - 1));
  const left = lines.length - kept.length + Math.max(0, linesIn(text) - blocks.lineCount);
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
  const page = new Page(width);
  return {
    push: (delta) => [...blocks.push(delta)].flatMap((piece) => page.add(piece)),
    rest(max = MOST_REST) {
      const copy = page.copy();
      const lines = [...blocks.rest()].flatMap((piece) => copy.add(piece));
      if (lines.length <= max) return lines;
      const kept = lines.slice(lines.length - Math.max(0, max - 1));
      const note = `… ${lines.length - kept.length} lines above`;
      return [...wrap([{ text: note, style: "dim" }], width, 1), ...kept];
    },
  };
}

/** Renders pieces with a blank line between blocks. */
class Page {
  readonly #width: number;
  #isEmpty: boolean;

  constructor(width: number, isEmpty = true) {
    this.#width = Math.max(2, width);
    this.#isEmpty = isEmpty;
  }

  copy(): Page {
    return new Page(this.#width, this.#isEmpty);
  }

  add(piece: Piece): readonly Line[] {
    switch (piece.kind) {
      case "code":
        return codeLines(piece.text, this.#width);
      case "fence":
        return [...this.#gap(), ...codeHead(piece.language, this.#width)];
      case "plain":
        return [...(piece.first ? this.#gap() : []), ...plainLines(piece.text, this.#width)];
      case "source": {
        const lines = sourceLines(piece.text, this.#width);
        return lines.length === 0 || piece.joined ? lines : [...this.#gap(), ...lines];
      }
    }
  }

  #gap(): readonly Line[] {
    const gap: readonly Line[] = this.#isEmpty ? [] : [[]];
    this.#isEmpty = false;
    return gap;
  }
}

function linesIn(text: string): number {
  let count = text.endsWith("\n") ? 0 : 1;
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) count += 1;
  return count;
}
