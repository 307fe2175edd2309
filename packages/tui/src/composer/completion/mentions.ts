import { parseJson } from "@sluice/core";
import type { Fold, Piece } from "../editing/buffer.ts";

/** A file that is named in a text: `@src/a.ts`, or `@"two words.ts"` with the escapes of JSON. */
export interface Mention {
  /** Where its `@` stands. */
  readonly start: number;
  readonly end: number;
  readonly path: string;
}

/** An `@` begins a mention where no word is in front of it. */
const AT = /(?<![^\s([{<,;:"'`])@/g;
const QUOTED = /"(?:[^"\\\n]|\\.)*"?/y;
const BARE = /[^\s"]\S*/y;
/** Ends a sentence or a bracket, unless quoted. */
const TRAILING = /[.,;:!?)\]}>'"`]+$/;
const LONGEST = 4_096;

/** Files named in a text outside of what is folded: what was pasted at length names none. */
function mentionsIn(piece: Piece): readonly Mention[] {
  return typedParts(piece).flatMap(({ start, end }) => mentionsOf(piece.text.slice(start, end), start));
}

/** The true names of the files, each once, in order. */
export function filesIn(piece: Piece): readonly string[] {
  return [...new Set(mentionsIn(piece).map((mention) => mention.path))];
}

function typedParts(piece: Piece): readonly { readonly start: number; readonly end: number }[] {
  const starts = [0, ...piece.folds.map((fold: Fold) => fold.end)];
  const ends = [...piece.folds.map((fold: Fold) => fold.start), piece.text.length];
  return starts.map((start, index) => ({ start, end: ends[index] ?? piece.text.length }));
}

function mentionsOf(text: string, offset: number): readonly Mention[] {
  const mentions: Mention[] = [];
  let from = 0;
  for (const { index } of text.matchAll(AT)) {
    if (index < from) continue;
    const found = wordAt(text, index + 1);
    if (found === undefined) continue;
    mentions.push({ start: offset + index, end: offset + found.end, path: found.path });
    from = found.end;
  }
  return mentions;
}

function wordAt(text: string, at: number): { readonly path: string; readonly end: number } | undefined {
  QUOTED.lastIndex = at;
  const quoted = QUOTED.exec(text)?.[0];
  if (quoted !== undefined) {
    const path = unquoted(quoted);
    return path === undefined || path === "" ? undefined : { path, end: at + quoted.length };
  }
  BARE.lastIndex = at;
  const path = BARE.exec(text)?.[0].replace(TRAILING, "");
  return path === undefined || path === "" || path.length > LONGEST ? undefined : { path, end: at + path.length };
}

function unquoted(quoted: string): string | undefined {
  if (quoted.length > LONGEST) return undefined;
  const value = parseJson(quoted);
  return value.ok && typeof value.value === "string" ? value.value : undefined;
}

/** A name as it can be typed: in quotes where it would not be read back as itself. */
export function quotedName(name: string): string {
  const plain = /^[^\s"\\\p{Cc}]+$/u.test(name) && !TRAILING.test(name);
  return plain ? name : JSON.stringify(name);
}

/** The mention that is being typed in front of a cursor, as far as it goes; `end` is where its word ends. */
export function mentionAt(
  piece: Piece,
  cursor: number,
): { readonly start: number; readonly end: number; readonly query: string } | undefined {
  const part = typedParts(piece).find(({ start, end }) => start <= cursor && cursor <= end);
  if (part === undefined) return undefined;
  const line = Math.max(part.start, cursor === 0 ? 0 : piece.text.lastIndexOf("\n", cursor - 1) + 1, cursor - LONGEST);
  const before = piece.text.slice(line, cursor);
  for (const { index } of [...before.matchAll(AT)].reverse()) {
    const typed = before.slice(index + 1);
    const quoted = typed.startsWith('"');
    // A quote that was closed, or a blank, is behind the mention.
    if (quoted ? /^"(?:[^"\\]|\\.)*"/.test(typed) : /\s/.test(typed)) continue;
    const rest = piece.text.slice(cursor, Math.min(part.end, cursor + LONGEST));
    const tail = quoted ? (/^(?:[^"\\\n]|\\.)*"/.exec(rest)?.[0] ?? "") : (/^\S*/.exec(rest)?.[0] ?? "");
    const query = quoted ? (unquoted(`${typed}"`) ?? typed.slice(1)) : typed;
    return { start: line + index, end: cursor + tail.length, query };
  }
  return undefined;
}
