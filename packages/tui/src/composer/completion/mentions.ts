import { parseJson } from "@sluice/core";
import type { Fold, Piece } from "../editing/buffer.ts";

/** A file named in a text: `@src/a.ts`, or `@"two words.ts"` with JSON escapes. */
interface Mention {
  /** Offset of the `@`. */
  readonly start: number;
  readonly end: number;
  readonly path: string;
}

/** An `@` that does not follow a word. */
const AT = /(?<![^\s([{<,;:"'`])@/g;
const QUOTED = /"(?:[^"\\\n]|\\.)*"?/y;
const BARE = /[^\s"]\S*/y;
/** Punctuation that is not part of an unquoted name. */
const TRAILING = /[.,;:!?)\]}>'"`]+$/;
const MAX_LENGTH = 4_096;

/** The distinct files that a text names, outside of folds. */
export function filesIn(piece: Piece): readonly string[] {
  const mentions = typedParts(piece).flatMap(({ start, end }) => mentionsOf(piece.text.slice(start, end), start));
  return [...new Set(mentions.map(({ path }) => path))];
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
  return path === undefined || path === "" || path.length > MAX_LENGTH ? undefined : { path, end: at + path.length };
}

function unquoted(quoted: string): string | undefined {
  if (quoted.length > MAX_LENGTH) return undefined;
  const value = parseJson(quoted);
  return value.ok && typeof value.value === "string" ? value.value : undefined;
}

/** A name as text, quoted if necessary. */
export function quotedName(name: string): string {
  const plain = /^[^\s"\\\p{Cc}]+$/u.test(name) && !TRAILING.test(name);
  return plain ? name : JSON.stringify(name);
}

/** The mention before a cursor; `end` is the end of its word. */
export function mentionAt(
  piece: Piece,
  cursor: number,
): { readonly start: number; readonly end: number; readonly query: string } | undefined {
  const part = typedParts(piece).find(({ start, end }) => start <= cursor && cursor <= end);
  if (part === undefined) return undefined;
  const line = Math.max(
    part.start,
    cursor === 0 ? 0 : piece.text.lastIndexOf("\n", cursor - 1) + 1,
    cursor - MAX_LENGTH,
  );
  const before = piece.text.slice(line, cursor);
  for (const { index } of [...before.matchAll(AT)].reverse()) {
    const typed = before.slice(index + 1);
    const quoted = typed.startsWith('"');
    // A closed quote or a blank ends the mention.
    if (quoted ? /^"(?:[^"\\]|\\.)*"/.test(typed) : /\s/.test(typed)) continue;
    const following = piece.text.slice(cursor, Math.min(part.end, cursor + MAX_LENGTH));
    const tail = quoted ? (/^(?:[^"\\\n]|\\.)*"/.exec(following)?.[0] ?? "") : (/^\S*/.exec(following)?.[0] ?? "");
    const query = quoted ? (unquoted(`${typed}"`) ?? typed.slice(1)) : typed;
    return { start: line + index, end: cursor + tail.length, query };
  }
  return undefined;
}
