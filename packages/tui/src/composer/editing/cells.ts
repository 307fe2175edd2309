import { cleanInline, cut, headOf, type Line, revealed, type Span, tailOf, widthOf } from "@sluice/view/text";
import { graphemesOf } from "./pastes.ts";

/** One unit of a text on the screen. */
export interface Cell {
  readonly spans: Line;
  /** Columns. */
  readonly width: number;
}

const ASCII = /^[\x20-\x7e]$/;
/** Emoji, whose joiners and variation selectors need no escape. */
const EMOJI = /^(?=.*\p{Emoji})[\p{Emoji}\p{Emoji_Component}]+$/u;
const MARK_FIRST = /^\p{M}/u;
const TAB = "    ";
/** UTF-16 units shown of one grapheme, which may have thousands of marks. */
const MAX_GRAPHEME = 32;

/** A grapheme of the input in at most `room` columns; invisible characters are escaped. */
export function cellOf(grapheme: string, room: number): Cell {
  if (ASCII.test(grapheme)) return { spans: [{ text: grapheme }], width: 1 };
  if (grapheme === "\t") return fitted([{ text: TAB }], room);
  const head = headOf(grapheme, MAX_GRAPHEME);
  const short = MARK_FIRST.test(head) ? `◌${head}` : head;
  const shown = cleanInline(short);
  const isPlain = widthOf(shown) > 0 && (shown === short || EMOJI.test(short));
  return fitted(isPlain ? [{ text: shown }] : revealed(short), room);
}

export function labelCell(text: string, room: number): Cell {
  return fitted([{ text, style: "accent" }], room);
}

function fitted(line: Line, room: number): Cell {
  const spans = cut(line, room);
  return { spans, width: widthOf(spans) };
}

/** The end of a text, sanitized, in at most `room` columns. */
export function endOf(text: string, room: number): string {
  const shown = cleanInline(tailOf(text, room * 8));
  if (widthOf(shown) <= room && text.length <= room * 8) return shown;
  if (room < 1) return "";
  let end = "";
  for (const grapheme of [...graphemesOf(shown)].reverse()) {
    if (widthOf(grapheme + end) > room - 1) break;
    end = grapheme + end;
  }
  return `…${end}`;
}

/** Cells side by side, with spans of one style joined. */
export function lineOf(cells: readonly Cell[]): Line {
  const spans: Span[] = [];
  for (const { text, style = "plain" } of cells.flatMap((cell) => cell.spans)) {
    const last = spans.at(-1);
    if (last?.style === style) spans[spans.length - 1] = { text: last.text + text, style };
    else spans.push({ text, style });
  }
  return spans;
}
