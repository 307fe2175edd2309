import { parseJson } from "@sluice/core";

/** An `@` that does not follow a word. */
const AT = /(?<![^\s([{<,;:"'`])@/g;
/** Everything up to the last line break or paste. */
const EARLIER = /^.*[\n\udc00-\udfff]/su;
const QUOTED_TAIL = /^(?:[^"\\\n\udc00-\udfff]|\\.)*"/u;
const BARE_TAIL = /^[^\s\udc00-\udfff]*/u;
/** Punctuation that is not part of an unquoted name. */
const TRAILING = /[.,;:!?)\]}>'"`]+$/;
const MAX_LENGTH = 4_096;

/** A name as text, quoted if necessary: `src/a.ts`, or `"two words.ts"` with JSON escapes. */
export function quotedName(name: string): string {
  const plain = /^[^\s"\\\p{Cc}]+$/u.test(name) && !TRAILING.test(name);
  return plain ? name : JSON.stringify(name);
}

/** The file named before a cursor: `@src/a.ts`, or `@"two words.ts"`; `end` is the end of its word. */
export function mentionAt(
  text: string,
  cursor: number,
): { readonly start: number; readonly end: number; readonly query: string } | undefined {
  const before = text.slice(Math.max(0, cursor - MAX_LENGTH), cursor).replace(EARLIER, "");
  const after = text.slice(cursor, cursor + MAX_LENGTH);
  for (const { index } of [...before.matchAll(AT)].reverse()) {
    const typed = before.slice(index + 1);
    const quoted = typed.startsWith('"');
    // A closed quote or a blank ends the mention.
    if (quoted ? /^"(?:[^"\\]|\\.)*"/.test(typed) : /\s/.test(typed)) continue;
    const [tail = ""] = (quoted ? QUOTED_TAIL : BARE_TAIL).exec(after) ?? [];
    const query = quoted ? (unquoted(`${typed}"`) ?? typed.slice(1)) : typed;
    return { start: cursor - before.length + index, end: cursor + tail.length, query };
  }
  return undefined;
}

function unquoted(quoted: string): string | undefined {
  const value = parseJson(quoted);
  return value.ok && typeof value.value === "string" ? value.value : undefined;
}
