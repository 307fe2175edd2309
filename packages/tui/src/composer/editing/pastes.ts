/** A text in which each long paste is one character: a low surrogate by itself, which no other text contains. */
export interface FoldedText {
  readonly text: string;
  /** The pastes by the number of their character, some of which the text may no longer contain. */
  readonly pastes: readonly string[];
}

/** A paste that exceeds either is folded. */
const UNFOLDED_LINES = 5;
const UNFOLDED_CHARACTERS = 1_000;

const FIRST_MARK = 0xdc00;
const MAX_PASTES = 1_024;
/** Holds the place of a paste that is no longer needed. */
const FREE = "";
const MARK = /[\udc00-\udfff]/gu;
const IS_MARK = /^[\udc00-\udfff]$/u;
const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" });

/** Whether a character stands for a paste. */
export function isPaste(character: string): boolean {
  return IS_MARK.test(character);
}

/** Adds a paste. Returns the pastes and what stands for the new one; the text itself if there are too many. */
export function foldPaste(pastes: readonly string[], text: string): FoldedText {
  const free = pastes.indexOf(FREE);
  const number = free === -1 ? pastes.length : free;
  if (number === MAX_PASTES) return { text, pastes };
  return { text: String.fromCharCode(FIRST_MARK + number), pastes: pastes.toSpliced(number, 1, text) };
}

/** Adds the pastes of a text to others. Returns the text with their new characters. */
export function movePastes({ text, pastes }: FoldedText, others: readonly string[]): FoldedText {
  let all = others;
  const moved = text.replaceAll(MARK, (mark) => {
    const folded = foldPaste(all, pastes[numberOf(mark)] ?? "");
    all = folded.pastes;
    return folded.text;
  });
  return { text: moved, pastes: all };
}

/** The pastes in a text, by number. */
export function pastesIn({ text, pastes }: FoldedText): ReadonlyMap<number, string> {
  const numbers = pastes.length === 0 ? [] : [...text.matchAll(MARK)].map(([mark]) => numberOf(mark));
  return new Map(numbers.map((number) => [number, pastes[number] ?? ""]));
}

/** Frees the numbers of all other pastes. */
export function keepPastes(pastes: readonly string[], kept: ReadonlySet<number>): readonly string[] {
  return pastes.map((paste, number) => (kept.has(number) ? paste : FREE));
}

export function wholeText({ text, pastes }: FoldedText): string {
  return pastes.length === 0 ? text : text.replaceAll(MARK, (mark) => pastes[numberOf(mark)] ?? "");
}

/** The label of a paste: `[paste 1: 214 lines]`. */
export function pasteLabel(mark: string, pastes: readonly string[]): string {
  const number = numberOf(mark);
  const text = pastes[number] ?? "";
  const lines = text.split("\n").length;
  return `[paste ${number + 1}: ${lines > 1 ? `${lines} lines` : `${text.length} characters`}]`;
}

function numberOf(mark: string): number {
  return mark.charCodeAt(0) - FIRST_MARK;
}

/** Whether a paste is folded. */
export function isLong(text: string): boolean {
  return text.length > UNFOLDED_CHARACTERS || text.split("\n").length > UNFOLDED_LINES;
}

/** The boundary between graphemes at or after an offset. */
export function boundaryAt(text: string, offset: number): number {
  const at = Math.max(0, Math.min(offset, text.length));
  if (at === 0 || at === text.length) return at;
  const { start, end } = graphemeAt(text, at);
  return start === at ? at : end;
}

/** The next boundary; the end of the text at its end. */
export function boundaryAfter(text: string, offset: number): number {
  return offset >= text.length ? text.length : graphemeAt(text, offset).end;
}

/** The previous boundary; 0 at the beginning. */
export function boundaryBefore(text: string, offset: number): number {
  return offset <= 0 ? 0 : graphemeAt(text, offset - 1).start;
}

/** The start of the line that contains an offset. */
export function lineStart(text: string, offset: number): number {
  return offset === 0 ? 0 : text.lastIndexOf("\n", offset - 1) + 1;
}

/** The end of the line that contains an offset, without its line break. */
export function lineEnd(text: string, offset: number): number {
  const end = text.indexOf("\n", offset);
  return end === -1 ? text.length : end;
}

/** The range of the grapheme with the UTF-16 unit at an index. */
function graphemeAt(text: string, index: number): { readonly start: number; readonly end: number } {
  if (text[index] === "\n") return { start: index, end: index + 1 };
  const from = lineStart(text, index);
  const found = segmented(text.slice(from, lineEnd(text, index))).containing(index - from);
  const start = from + (found?.index ?? 0);
  return { start, end: start + (found?.segment.length ?? 1) };
}

export function* graphemesOf(text: string): Generator<string> {
  for (const { index, segment } of segmented(text)) yield text.slice(index, index + segment.length);
}

/** A paste joins no other character, as a line break does not. */
function segmented(text: string): Intl.Segments {
  return graphemes.segment(text.replaceAll(MARK, "\n"));
}
