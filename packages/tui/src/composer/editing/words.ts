import { boundaryAt, boundaryBefore, foldEndingAt, foldStartingAt, type Piece } from "./buffer.ts";

const IN_WORD = /[\p{L}\p{N}\p{M}_]/u;
const BLANK = /\s/;

/** What a word is made of: letters and digits, or all that is not blank. */
export type WordKind = "name" | "blank";

/** Where the word that ends before an offset begins. A fold is a word. */
export function wordStart(piece: Piece, offset: number, kind: WordKind): number {
  let at = offset;
  while (at > 0 && foldEndingAt(piece.folds, at) === undefined && !belongs(before(piece, at), kind))
    at -= before(piece, at).length;
  const fold = foldEndingAt(piece.folds, at);
  if (fold !== undefined) return fold.start;
  while (at > 0 && foldEndingAt(piece.folds, at) === undefined && belongs(before(piece, at), kind))
    at -= before(piece, at).length;
  // Never into a grapheme: what came back is its beginning.
  return boundaryAt(piece, at) === at ? at : boundaryBefore(piece, at);
}

/** Where the word that begins after an offset ends. A fold is a word. */
export function wordEnd(piece: Piece, offset: number, kind: WordKind): number {
  const end = piece.text.length;
  let at = offset;
  while (at < end && foldStartingAt(piece.folds, at) === undefined && !belongs(after(piece, at), kind))
    at += after(piece, at).length;
  const fold = foldStartingAt(piece.folds, at);
  if (fold !== undefined) return fold.end;
  while (at < end && foldStartingAt(piece.folds, at) === undefined && belongs(after(piece, at), kind))
    at += after(piece, at).length;
  return boundaryAt(piece, at);
}

function belongs(character: string, kind: WordKind): boolean {
  return kind === "name" ? IN_WORD.test(character) : !BLANK.test(character);
}

function after(piece: Piece, offset: number): string {
  return String.fromCodePoint(piece.text.codePointAt(offset) ?? 0);
}

function before(piece: Piece, offset: number): string {
  const low = piece.text.charCodeAt(offset - 1);
  const high = offset > 1 ? piece.text.charCodeAt(offset - 2) : 0;
  const pair = low >= 0xdc00 && low <= 0xdfff && high >= 0xd800 && high <= 0xdbff;
  return piece.text.slice(offset - (pair ? 2 : 1), offset);
}
