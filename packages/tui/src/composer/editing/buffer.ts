/** A paste that is shown as one unit. Offsets are UTF-16 units of the whole text. */
export interface Fold {
  readonly start: number;
  readonly end: number;
  /** Shown in its label; unique in the text. */
  readonly number: number;
}

/** A text and its folds, sorted and disjoint. */
export interface Piece {
  readonly text: string;
  readonly folds: readonly Fold[];
}

/** A paste that exceeds either is folded. */
const UNFOLDED_LINES = 5;
const UNFOLDED_CHARACTERS = 1_000;

const EMPTY: Piece = { text: "", folds: [] };
const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" });

export function plainPiece(text: string): Piece {
  return text === "" ? EMPTY : { text, folds: [] };
}

export function foldedPiece(text: string, number: number): Piece {
  return { text, folds: [{ start: 0, end: text.length, number }] };
}

/** Whether a paste is folded. */
export function isLong(text: string): boolean {
  return text.length > UNFOLDED_CHARACTERS || countLines(text, UNFOLDED_LINES + 1) > UNFOLDED_LINES;
}

/** The number of lines, at most `most`. */
function countLines(text: string, most: number): number {
  let lines = 1;
  for (let at = text.indexOf("\n"); at !== -1 && lines < most; at = text.indexOf("\n", at + 1)) lines += 1;
  return lines;
}

/** The label of a fold: `[paste 1: 214 lines]`. */
export function foldLabel(text: string, fold: Fold): string {
  const lines = countLines(text.slice(fold.start, fold.end), Number.POSITIVE_INFINITY);
  const size = lines > 1 ? `${lines} lines` : `${fold.end - fold.start} characters`;
  return `[paste ${fold.number}: ${size}]`;
}

/** The part between two unit boundaries. */
export function slicePiece(piece: Piece, start: number, end: number): Piece {
  const folds = piece.folds.filter((fold) => fold.start >= start && fold.end <= end);
  return {
    text: piece.text.slice(start, end),
    folds: folds.map((fold) => ({ ...fold, start: fold.start - start, end: fold.end - start })),
  };
}

/** Replaces the part between two unit boundaries. */
export function splicePiece(piece: Piece, start: number, end: number, inserted: Piece): Piece {
  const shift = start + inserted.text.length - end;
  return {
    text: piece.text.slice(0, start) + inserted.text + piece.text.slice(end),
    folds: [
      ...piece.folds.filter((fold) => fold.end <= start),
      ...inserted.folds.map((fold) => ({ ...fold, start: fold.start + start, end: fold.end + start })),
      ...piece.folds
        .filter((fold) => fold.start >= end)
        .map((fold) => ({ ...fold, start: fold.start + shift, end: fold.end + shift })),
    ],
  };
}

export function joinPieces(first: Piece, second: Piece): Piece {
  return splicePiece(first, first.text.length, first.text.length, second);
}

/** Renumbers the folds of an inserted piece so that they are unique. */
export function renumbered(piece: Piece, used: readonly Fold[]): Piece {
  if (piece.folds.length === 0) return piece;
  const numbers = new Set(used.map((fold) => fold.number));
  const folds = piece.folds.map((fold) => {
    let number = fold.number;
    while (numbers.has(number)) number += 1;
    numbers.add(number);
    return { ...fold, number };
  });
  return { text: piece.text, folds };
}

export function nextFoldNumber(folds: readonly Fold[]): number {
  return folds.reduce((highest, fold) => Math.max(highest, fold.number), 0) + 1;
}

export function foldStartingAt(folds: readonly Fold[], offset: number): Fold | undefined {
  return folds.find((fold) => fold.start === offset);
}

export function foldEndingAt(folds: readonly Fold[], offset: number): Fold | undefined {
  return folds.find((fold) => fold.end === offset);
}

/** The range around an offset without folds and line breaks. */
export function stretchAround(piece: Piece, offset: number): { readonly start: number; readonly end: number } {
  const breakBefore = offset === 0 ? -1 : piece.text.lastIndexOf("\n", offset - 1);
  const breakAfter = piece.text.indexOf("\n", offset);
  let start = breakBefore + 1;
  let end = breakAfter === -1 ? piece.text.length : breakAfter;
  for (const fold of piece.folds) {
    if (fold.end <= offset) start = Math.max(start, fold.end);
    if (fold.start >= offset) end = Math.min(end, fold.start);
  }
  return { start, end };
}

/** The unit boundary at or after an offset: graphemes and folds are units. */
export function boundaryAt(piece: Piece, offset: number): number {
  const at = Math.max(0, Math.min(offset, piece.text.length));
  const fold = piece.folds.find((one) => one.start < at && at < one.end);
  if (fold !== undefined) return fold.end;
  const { start, end } = stretchAround(piece, at);
  const unit = at < end ? unitIn(piece.text.slice(start, end), at - start) : undefined;
  return unit === undefined || start + unit.index === at ? at : start + unit.index + unit.length;
}

/** The next boundary; the end of the text at its end. */
export function boundaryAfter(piece: Piece, offset: number): number {
  if (offset >= piece.text.length) return piece.text.length;
  const fold = foldStartingAt(piece.folds, offset);
  if (fold !== undefined) return fold.end;
  if (piece.text[offset] === "\n") return offset + 1;
  const { start, end } = stretchAround(piece, offset);
  const unit = unitIn(piece.text.slice(start, end), offset - start);
  return unit === undefined ? end : start + unit.index + unit.length;
}

/** The previous boundary; 0 at the beginning. */
export function boundaryBefore(piece: Piece, offset: number): number {
  if (offset <= 0) return 0;
  const fold = foldEndingAt(piece.folds, offset);
  if (fold !== undefined) return fold.start;
  if (piece.text[offset - 1] === "\n") return offset - 1;
  const { start, end } = stretchAround(piece, offset);
  const unit = unitIn(piece.text.slice(start, end), offset - 1 - start);
  return unit === undefined ? start : start + unit.index;
}

function unitIn(text: string, index: number): { readonly index: number; readonly length: number } | undefined {
  const found = graphemes.segment(text).containing(index);
  return found === undefined ? undefined : { index: found.index, length: found.segment.length };
}

export function* graphemesOf(text: string): Generator<string> {
  for (const { segment } of graphemes.segment(text)) yield segment;
}
