import { count } from "../../words/words.ts";
import { html, type Markup, NOTHING } from "./markup.ts";
import { cutNote } from "./texts.ts";

export interface TableHead {
  readonly caption: string;
  readonly head: readonly string[];
  /** Indexes of the columns with numbers. */
  readonly numbers?: readonly number[];
}

/** A table of the first `rows` of `all`. */
export function table(
  { caption, head, numbers = [] }: TableHead,
  rows: readonly (readonly Markup[])[],
  all = rows.length,
): Markup {
  const name = (at: number): Markup => (numbers.includes(at) ? html` class="n"` : NOTHING);
  const left = all - rows.length;
  const body = rows.map((row) => html`<tr>${row.map((cell, at) => html`<td${name(at)}>${cell}</td>`)}</tr>\n`);
  const rest = left > 0 ? html`<tr><td colspan="${head.length}">${cutNote(count(left, "row"))}</td></tr>` : NOTHING;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="${caption}"><table><caption>${caption}</caption><thead><tr>${head.map((one, at) => html`<th scope="col"${name(at)}>${one}</th>`)}</tr></thead><tbody>
${body}${rest}</tbody></table></div>`;
}
