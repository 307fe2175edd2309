import { headOf } from "../text/clean.ts";
import type { CallChange } from "../text/diff.ts";
import { type DiffRow, diffRowCount, diffRows, type Segment } from "../text/diff-compare.ts";
import { count } from "../words/words.ts";
import { exact, html, joined, type Markup, NOTHING } from "./markup/markup.ts";
import { cutNote } from "./markup/texts.ts";

/** Equal lines shown around each change. */
const CONTEXT = 3;
const MOST_ROWS = 300;
/** UTF-16 units of one line. */
const LONGEST_LINE = 1_000;

/** A change as a table with signs and changed words; that of a whole file has line numbers. */
export function changeTable({ path, old, now, runs, added, removed, isWhole, notes }: CallChange): Markup {
  const rows: Markup[] = [];
  let left = diffRowCount(runs, CONTEXT);
  for (const row of diffRows(runs, old, now, CONTEXT)) {
    if (rows.length === MOST_ROWS) break;
    rows.push(rowMarkup(row, isWhole));
    if (row.kind !== "gap") left -= 1;
  }
  const caption = html`<caption><code>${exact(path)}</code> <span class="added">+${added}</span> <span class="removed">−${removed}</span> <span class="faint">${notes.join(", ")}</span></caption>`;
  const number = isWhole ? html`<th scope="col">number</th>` : NOTHING;
  const head = html`<thead><tr>${number}<th scope="col">±</th><th scope="col">line</th></tr></thead>`;
  const rest = left > 0 ? html`<tr><td colspan="3">${cutNote(count(left, "row"))}</td></tr>` : NOTHING;
  return html`<div class="scroll" tabindex="0"><table class="diff">${caption}${head}<tbody>${rows}${rest}</tbody></table></div>`;
}

const SIGNS = { same: " ", removed: "−", added: "+" } as const;

function rowMarkup(row: DiffRow, isNumbered: boolean): Markup {
  if (row.kind === "gap") return html`<tr class="gap"><td colspan="3">⋯ ${count(row.count, "equal line")}</td></tr>`;
  const number = isNumbered ? html`<td class="n">${row.number}</td>` : NOTHING;
  return html`<tr class="${row.kind}">${number}<td class="sign">${SIGNS[row.kind]}</td><td class="line">${segmentsMarkup(row.segments(), row.kind)}</td></tr>`;
}

function segmentsMarkup(segments: readonly Segment[], kind: DiffRow["kind"]): Markup {
  const parts: Markup[] = [];
  let room = LONGEST_LINE;
  for (const { text, changed } of segments) {
    const shown = headOf(text, room);
    room -= shown.length;
    const words = joined(shown.split("\t").map(exact), html`	`);
    parts.push(!changed ? words : kind === "removed" ? html`<del>${words}</del>` : html`<ins>${words}</ins>`);
    if (shown.length < text.length) return html`${parts} ${cutNote(count(text.length - shown.length, "character"))}`;
  }
  return joined(parts);
}
