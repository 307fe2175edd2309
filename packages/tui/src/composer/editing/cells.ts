import {
  cleanInline,
  cut,
  headOf,
  type Line,
  revealed,
  type Span,
  type Style,
  tailOf,
  widthOf,
} from "@sluice/view/text";
import { graphemesOf } from "./buffer.ts";

/** One unit of a text as it stands on the screen. */
export interface Cell {
  readonly spans: Line;
  /** Columns. */
  readonly width: number;
}

const ASCII = /^[\x20-\x7e]$/;
/** What emoji are made of: joiners and variants among them say nothing that has to be seen. */
const EMOJI = /^(?=.*\p{Emoji})[\p{Emoji}\p{Emoji_Component}]+$/u;
const MARK_FIRST = /^\p{M}/u;
const TAB = "    ";
/** UTF-16 units of one grapheme that are shown: a letter may carry thousands of marks. */
const MOST_OF_ONE = 32;

/** How a grapheme that somebody typed or pasted is shown in at most `room` columns. What is not seen is named. */
export function cellOf(grapheme: string, room: number): Cell {
  if (ASCII.test(grapheme)) return { spans: [{ text: grapheme }], width: 1 };
  if (grapheme === "\t") return fitted([{ text: TAB }], room);
  const head = headOf(grapheme, MOST_OF_ONE);
  const short = MARK_FIRST.test(head) ? `◌${head}` : head;
  const shown = cleanInline(short);
  const isPlain = widthOf(shown) > 0 && (shown === short || EMOJI.test(short));
  return fitted(isPlain ? [{ text: shown }] : revealed(short), room);
}

/** A word of ours in place of many characters. */
export function labelCell(text: string, room: number): Cell {
  return fitted([{ text, style: "accent" }], room);
}

function fitted(line: Line, room: number): Cell {
  const spans = cut(line, room);
  return { spans, width: widthOf(spans) };
}

/** A text on one line and clean, in at most `room` columns; of a longer one the end is shown. */
export function endOf(text: string, room: number): string {
  const shown = cleanInline(tailOf(text, room * 8));
  if (widthOf(shown) <= room && text.length <= room * 8) return shown;
  if (room < 1) return "";
  let kept = "";
  for (const grapheme of [...graphemesOf(shown)].reverse()) {
    if (widthOf(grapheme + kept) > room - 1) break;
    kept = grapheme + kept;
  }
  return `…${kept}`;
}

/** Cells side by side, with neighbouring spans of one style joined. `style` goes over all that is plain. */
export function lineOf(cells: readonly Cell[], styleOf?: (index: number) => Style | undefined): Line {
  const spans: Span[] = [];
  for (const [index, cell] of cells.entries()) {
    const over = styleOf?.(index);
    for (const span of cell.spans) {
      const style = over ?? span.style ?? "plain";
      const last = spans.at(-1);
      if (last !== undefined && last.style === style) spans[spans.length - 1] = { text: last.text + span.text, style };
      else spans.push({ text: span.text, style });
    }
  }
  return spans;
}
