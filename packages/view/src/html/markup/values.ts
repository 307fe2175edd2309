import type { Json } from "@sluice/core";
import { count } from "../../words/words.ts";
import { html, joined, type Markup, verbatim } from "./markup.ts";
import { cutNote, exactLines, shortText, textBlock } from "./texts.ts";

/** Depth of nested values; of deeper ones only the size is shown. */
const DEEPEST = 8;
/** Members of one list or object. */
const MOST_MEMBERS = 100;
const LONGEST_KEY = 200;
const LONGEST_LINE = 300;
/** UTF-16 units of one string. */
const LONGEST_TEXT = 6_000;

/** JSON as names and values, with long texts in blocks. The size is bounded. */
export function value(json: Json, most: number): Markup {
  return part(json, { left: most }, 0);
}

/** UTF-16 units that can still be shown; each member counts as ten more. */
interface Room {
  left: number;
}

function part(json: Json, room: Room, depth: number): Markup {
  room.left -= 10;
  if (typeof json === "string") return text(json, room);
  if (json === null || typeof json !== "object") return html`<code class="literal">${String(json)}</code>`;
  return Array.isArray(json) ? list(json, room, depth) : members(Object.entries(json), room, depth);
}

function text(words: string, room: Room): Markup {
  const most = Math.max(80, Math.min(LONGEST_TEXT, room.left));
  room.left -= Math.min(words.length, most);
  if (words === "") return verbatim`<i class="faint">empty text</i>`;
  return words.length <= LONGEST_LINE && !words.includes("\n")
    ? html`<span class="text">${shortText(words, most)}</span>`
    : textBlock(words, most, exactLines);
}

function list(items: readonly Json[], room: Room, depth: number): Markup {
  if (items.length === 0) return verbatim`<i class="faint">empty list</i>`;
  if (depth >= DEEPEST) return cutNote(`a list of ${count(items.length, "value")}`);
  const { shown, left } = within(items, room, (item) => html`<li>${part(item, room, depth + 1)}</li>`);
  return html`<ol class="values">${shown}${left > 0 ? html`<li>${cutNote(count(left, "more value"))}</li>` : undefined}</ol>`;
}

function members(entries: readonly (readonly [string, Json])[], room: Room, depth: number): Markup {
  if (entries.length === 0) return verbatim`<i class="faint">empty object</i>`;
  if (depth >= DEEPEST) return cutNote(`an object of ${count(entries.length, "member")}`);
  const { shown, left } = within(entries, room, ([key, member]) => {
    room.left -= Math.min(key.length, LONGEST_KEY);
    return html`<div><dt>${shortText(key, LONGEST_KEY)}</dt><dd>${part(member, room, depth + 1)}</dd></div>`;
  });
  const rest = left > 0 ? html`<div><dt>…</dt><dd>${cutNote(count(left, "more member"))}</dd></div>` : undefined;
  return html`<dl class="values">${shown}${rest}</dl>`;
}

function within<T>(
  all: readonly T[],
  room: Room,
  one: (item: T) => Markup,
): { readonly shown: Markup; readonly left: number } {
  const shown: Markup[] = [];
  for (const item of all.slice(0, MOST_MEMBERS)) {
    if (room.left <= 0) break;
    shown.push(one(item));
  }
  return { shown: joined(shown), left: all.length - shown.length };
}
