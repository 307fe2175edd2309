import stringWidth from "string-width";
import type { Line, Span } from "./line.ts";

/** UTF-16 units and letters of one character. Longer ones occur in no script and are split. */
const LONGEST_CHARACTER = 24;
const MOST_LETTERS = 6;
/** Maximum UTF-16 units of clean text per column. */
const UNITS_A_COLUMN = 8;

/** Ranges of common letters and signs that never combine: first, last, columns. */
const ALONE: readonly (readonly [number, number, 1 | 2])[] = [
  [0x2010, 0x2027, 1],
  [0x2190, 0x22ff, 1],
  [0x2500, 0x259f, 1],
  [0x4e00, 0x9fff, 2],
  [0xac00, 0xd7a3, 2],
  [0x3041, 0x3096, 2],
  [0x30a1, 0x30fa, 2],
  [0x370, 0x482, 1],
  [0x48a, 0x52f, 1],
  [0x1e00, 0x1eff, 1],
];
const segmenter = new Intl.Segmenter("en", { granularity: "grapheme" });
/** Letters drawn on or in the letter before, even by terminals without grapheme clusters. */
const JOINED = /[\p{Mn}\p{Me}\u1160-\u11ff\ud7b0-\ud7ff]/gu;
/** Regional indicators, the halves of flags, are narrow. */
const WIDE_EMOJI = /^(?!\p{Regional_Indicator})\p{Emoji_Presentation}$/u;
/** Letters that can make a character wider than its parts: emoji joiners and Korean jamo. */
const COMPOSED = /\ufe0f|\u200d|\u20e3|[\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff]/;
const WIDE_LETTER = /[\p{Ideographic}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}\u3000-\u303f\uff00-\uff60]/u;
const ENDS_WIDE = new RegExp(`${WIDE_LETTER.source}$`, "u");

/** Columns of clean text or a line; the larger number if terminals disagree, so that no row overflows. */
export function widthOf(text: string | Line): number {
  if (typeof text === "string") return fitting(text, 0, Number.POSITIVE_INFINITY).width;
  return text.reduce((sum, span) => sum + widthOf(span.text), 0);
}

/** The line cut to `width` columns, with `…` at the end of a cut. */
export function cut(line: Line, width: number): Line {
  const whole = headOfLine(line, width);
  if (whole.complete) return line;
  if (width < 1) return [];
  const { spans } = headOfLine(line, width - 1);
  const style = spans.at(-1)?.style ?? line[0]?.style;
  return [...spans, style === undefined ? { text: "…" } : { text: "…", style }];
}

/** The line in exactly `width` columns, cut or filled with spaces. */
export function pad(line: Line, width: number, side: "left" | "right" = "right"): Line {
  const shown = cut(line, width);
  const room = width - widthOf(shown);
  if (room <= 0) return shown;
  const space = { text: " ".repeat(room) };
  return side === "right" ? [...shown, space] : [space, ...shown];
}

/**
 * The line in rows of at most `width` columns (at least 2), broken between words, and inside words longer than a row. Spaces at
 * a break are dropped. With more than `most` rows the last one ends in `…`, and the rest is not measured.
 */
export function wrap(line: Line, width: number, most = Number.POSITIVE_INFINITY): readonly Line[] {
  const columns = Math.max(2, width);
  const { text, complete } = joined(line, most * columns * UNITS_A_COLUMN);
  const part = partsOf(line);
  const rows: Line[] = [];
  let at = 0;
  while (rows.length < most) {
    const end = rowEnd(text, at, columns);
    rows.push(part(at, at + text.slice(at, end).trimEnd().length));
    at = end;
    while (at < text.length && text.charCodeAt(at) === 0x20) at += 1;
    if (at >= text.length) break;
  }
  if (at >= text.length && complete) return rows;
  const last = rows.pop();
  return last === undefined ? rows : [...rows, cut([...last, { text: "…", style: "dim" }], columns)];
}

/** The end of the clean text that fits into `width` columns from an offset; never inside a character. */
export function fitting(text: string, from: number, width: number): { readonly end: number; readonly width: number } {
  let end = from;
  let used = 0;
  for (const { length, columns } of charactersFrom(text, from)) {
    if (used + columns > width) break;
    used += columns;
    end += length;
  }
  return { end, width: used };
}

/** The characters of clean text from an offset: their UTF-16 units and columns. */
function* charactersFrom(text: string, from: number): Generator<{ readonly length: number; readonly columns: number }> {
  let at = from;
  while (at < text.length) {
    const alone = aloneWidth(text.charCodeAt(at));
    if (alone !== 0 && (at + 1 === text.length || aloneWidth(text.charCodeAt(at + 1)) !== 0)) {
      yield { length: 1, columns: alone };
      at += 1;
      continue;
    }
    const [{ segment } = { segment: "" }] = segmenter.segment(text.slice(at, at + LONGEST_CHARACTER));
    const letters = [...segment.replaceAll(JOINED, "")];
    const isWhole = letters.length <= MOST_LETTERS && segment.length < LONGEST_CHARACTER;
    const character = isWhole ? segment : String.fromCodePoint(text.codePointAt(at) ?? 0);
    const apart = (isWhole ? letters : [character]).reduce((sum, letter) => sum + letterWidth(letter), 0);
    const columns = COMPOSED.test(character) ? Math.max(apart, stringWidth(character)) : apart;
    // At least one column, so that measuring ends for text that is not clean.
    yield { length: character.length, columns: Math.max(1, columns) };
    at += character.length;
  }
}

/** The columns of units that never join the one before; 0 for all others. */
function aloneWidth(unit: number): 0 | 1 | 2 {
  if (unit < 0x300) return 1;
  for (const [first, last, width] of ALONE) if (unit >= first && unit <= last) return width;
  return 0;
}

function letterWidth(letter: string): number {
  const quick = letter.length === 1 ? aloneWidth(letter.charCodeAt(0)) : 0;
  if (quick !== 0) return quick;
  return WIDE_EMOJI.test(letter) ? 2 : stringWidth(letter);
}

function headOfLine(line: Line, width: number): { readonly spans: readonly Span[]; readonly complete: boolean } {
  const spans: Span[] = [];
  let room = width;
  for (const span of line) {
    const { end, width: used } = fitting(span.text, 0, room);
    if (end < span.text.length) {
      if (end > 0) spans.push({ ...span, text: span.text.slice(0, end) });
      return { spans, complete: false };
    }
    spans.push(span);
    room -= used;
  }
  return { spans, complete: true };
}

function rowEnd(text: string, from: number, columns: number): number {
  const { end } = fitting(text, from, columns);
  if (end >= text.length || text.charCodeAt(end) === 0x20) return end;
  // A character wider than the row is split.
  if (end === from) return from + String.fromCodePoint(text.codePointAt(from) ?? 0).length;
  if (breaksBetween(text, end)) return end;
  for (let at = end - 1; at > from; at -= 1) {
    if (text.charCodeAt(at) === 0x20) return text.slice(from, at).trim() === "" ? end : at;
    if (breaksBetween(text, at)) return at;
  }
  return end;
}

/** Scripts without spaces break anywhere, except before a mark, a closing sign or a low surrogate. */
function breaksBetween(text: string, at: number): boolean {
  if (aloneWidth(text.charCodeAt(at)) === 0) return false;
  return WIDE_LETTER.test(text.charAt(at)) || ENDS_WIDE.test(text.slice(Math.max(0, at - 2), at));
}

function joined(line: Line, most: number): { readonly text: string; readonly complete: boolean } {
  let text = "";
  for (const span of line) {
    const room = most - text.length;
    if (span.text.length > room) return { text: text + span.text.slice(0, Math.max(0, room)), complete: false };
    text += span.text;
  }
  return { text, complete: true };
}

/** Slices a line by offsets into its joined text. Offsets must not decrease. */
function partsOf(line: Line): (start: number, end: number) => Line {
  let index = 0;
  let base = 0;
  return (start, end) => {
    const spans: Span[] = [];
    while (index < line.length) {
      const span = line[index];
      if (span === undefined) break;
      const last = base + span.text.length;
      const text = span.text.slice(Math.max(0, start - base), Math.max(0, Math.min(end, last) - base));
      if (text !== "") spans.push({ ...span, text });
      if (last > end) break;
      base = last;
      index += 1;
    }
    return spans;
  };
}
