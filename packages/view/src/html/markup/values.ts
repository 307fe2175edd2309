import type { Json } from "@sluice/core";
import { count } from "../../words/words.ts";
import { html, type Markup, NOTHING } from "./markup.ts";
import { cutNote, exactLines, shortText, textBlock } from "./texts.ts";

/** Depth of nested values; of deeper ones only the size is shown. */
const DEEPEST = 8;
/** Members of one list or object. */
const MOST_MEMBERS = 100;
const LONGEST_KEY = 200;
const LONGEST_LINE = 300;
/** UTF-16 units of one string. */
const LONGEST_TEXT = 6_000;

/** JSON as names and values, with long texts in blocks, in about `most` UTF-16 units; each value counts as ten more. */
export function value(json: Json, most: number): Markup {
  return part(json, { left: most }, 0);
}

/** UTF-16 units that can still be shown. */
interface Room {
  left: number;
}

function part(json: Json, room: Room, depth: number): Markup {
  room.left -= 10;
  if (json !== null && typeof json === "object") return members(json, room, depth);
  if (typeof json !== "string") return html`<code class="literal">${String(json)}</code>`;
  if (json === "") return html`<i class="faint">empty text</i>`;
  const most = Math.max(80, Math.min(LONGEST_TEXT, room.left));
  room.left -= Math.min(json.length, most);
  return json.length <= LONGEST_LINE && !json.includes("\n")
    ? html`<span class="text">${shortText(json, most)}</span>`
    : textBlock(json, most, exactLines);
}

function members(tree: object & Json, room: Room, depth: number): Markup {
  const isList = Array.isArray(tree);
  const [name, one] = isList ? ["list", "value"] : ["object", "member"];
  const all = Object.entries<Json>(tree);
  if (all.length === 0) return html`<i class="faint">empty ${name}</i>`;
  if (depth >= DEEPEST) return cutNote(`${isList ? "a" : "an"} ${name} of ${count(all.length, one)}`);
  const shown: Markup[] = [];
  for (const [key, member] of all.slice(0, MOST_MEMBERS)) {
    if (room.left <= 0) break;
    if (!isList) room.left -= Math.min(key.length, LONGEST_KEY);
    const inside = part(member, room, depth + 1);
    shown.push(
      isList ? html`<li>${inside}</li>` : html`<div><dt>${shortText(key, LONGEST_KEY)}</dt><dd>${inside}</dd></div>`,
    );
  }
  const left = all.length - shown.length;
  const rest = cutNote(count(left, `more ${one}`));
  if (isList) return html`<ol class="values">${shown}${left > 0 ? html`<li>${rest}</li>` : NOTHING}</ol>`;
  return html`<dl class="values">${shown}${left > 0 ? html`<div><dt>…</dt><dd>${rest}</dd></div>` : NOTHING}</dl>`;
}
