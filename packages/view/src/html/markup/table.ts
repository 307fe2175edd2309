import { count } from "../../words/words.ts";
import { html, type Markup, NOTHING } from "./markup.ts";
import { cutNote } from "./texts.ts";

const MOST_ROWS = 300;

/** A table of the first items. A head that begins with `#` is that of a column with numbers. `below` is shown under a row. */
export function table<T>(
  caption: string,
  heads: readonly string[],
  items: readonly T[],
  rowOf: (item: T) => readonly Markup[],
  below: (item: T) => Markup | undefined = () => undefined,
): Markup {
  const name = (at: number): Markup => (heads[at]?.startsWith("#") ? html` class="n"` : NOTHING);
  const left = items.length - MOST_ROWS;
  const head = heads.map((one, at) => html`<th scope="col"${name(at)}>${one.replace(/^#/, "")}</th>`);
  const body = items.slice(0, MOST_ROWS).map((item) => {
    const cells = rowOf(item).map((cell, at) => html`<td${name(at)}>${cell}</td>`);
    const more = below(item);
    if (more === undefined) return html`<tr>${cells}</tr>\n`;
    return html`<tr class="above">${cells}</tr>\n<tr><td colspan="${heads.length}">${more}</td></tr>\n`;
  });
  const rest = left > 0 ? html`<tr><td colspan="${heads.length}">${cutNote(count(left, "row"))}</td></tr>` : NOTHING;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="${caption}"><table><caption>${caption}</caption><thead><tr>${head}</tr></thead><tbody>
${body}${rest}</tbody></table></div>`;
}
