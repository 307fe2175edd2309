import { field, type Json } from "@sluice/core";
import { headOf } from "../text/clean.ts";
import { compareLines, type DiffRow, diffRows, type Segment } from "../text/diff-compare.ts";
import { textAt } from "../words/fields.ts";
import { count } from "../words/words.ts";
import { exact, html, joined, type Markup, NOTHING } from "./markup/markup.ts";
import { cutNote } from "./markup/texts.ts";

/** The change of an Edit or Write call, from its arguments. */
export interface Change {
  readonly path: string;
  readonly before: string;
  readonly after: string;
  /** The line in the file where both begin; undefined if unknown. */
  readonly first: number | undefined;
  readonly note: string;
}

const CONTEXT = 3;
const MOST_ROWS = 300;
/** UTF-16 units of one line. */
const LONGEST_LINE = 1_000;
/** UTF-16 units of one side that are compared. */
const LONGEST_SIDE = 200_000;

/** Undefined for other tools and other arguments. */
export function changeOf(tool: string, input: Json | undefined, output: Json | undefined): Change | undefined {
  const path = field(input, "file_path");
  if (typeof path !== "string") return undefined;
  const [content, before, after] = [field(input, "content"), field(input, "old_string"), field(input, "new_string")];
  if (tool === "Write" && typeof content === "string")
    return { path, before: "", after: content, first: 1, note: "the whole file" };
  if (tool !== "Edit" || typeof before !== "string" || typeof after !== "string") return undefined;
  const every = field(input, "replace_all") === true;
  const first = lineIn(output, after);
  const where = first === undefined ? "line numbers count from the edit" : "";
  return {
    path,
    before,
    after,
    first,
    note: [every ? "every occurrence" : "", where].filter((one) => one !== "").join(", "),
  };
}

/** Lines that the result of Edit shows before its change. */
const SHOWN_BEFORE = 3;

/** The line where an Edit's text begins, from the numbered lines of its result. */
function lineIn(output: Json | undefined, after: string): number | undefined {
  const text = typeof output === "string" ? output : textAt(output, "output");
  const lines = [...headOf(text, 20_000).matchAll(/^ *(\d{1,9})\t(.*)$/gm)].map(([, number, line = ""]) => ({
    number: Number(number),
    line,
  }));
  const [top] = lines;
  if (top === undefined) return undefined;
  if (top.number > 1) return top.number + SHOWN_BEFORE;
  const [begin = ""] = after.split("\n", 1);
  return lines.slice(0, SHOWN_BEFORE + 1).find(({ line }) => begin !== "" && line.includes(begin.slice(0, 400)))
    ?.number;
}

/** A change as a table with the line numbers of both sides, signs and changed words. */
export function changeTable({ path, before, after, first, note }: Change): Markup {
  const [old, now] = [linesOf(before), linesOf(after)];
  const { runs, added, removed, exact: whole } = compareLines(old.lines, now.lines);
  const rows: Markup[] = [];
  let left = 0;
  for (const row of diffRows(runs, old.lines, now.lines, CONTEXT)) {
    if (rows.length < MOST_ROWS) rows.push(rowMarkup(row, (first ?? 1) - 1));
    else left += 1;
  }
  const notes = [
    note,
    whole ? "" : "too large to compare line by line",
    old.cut || now.cut ? "only its beginning" : "",
  ].filter((one) => one !== "");
  const caption = html`<caption>${exact(path)} <span class="added">+${added}</span> <span class="removed">−${removed}</span>${notes.length === 0 ? undefined : html` <span class="faint">${notes.join(", ")}</span>`}</caption>`;
  const rest = left === 0 ? NOTHING : html`<tr><td colspan="4">${cutNote(count(left, "row"))}</td></tr>`;
  const head = html`<thead><tr><th scope="col">old</th><th scope="col">new</th><th scope="col">±</th><th scope="col">line</th></tr></thead>`;
  return html`<div class="scroll" tabindex="0"><table class="diff">${caption}${head}<tbody>${rows}${rest}</tbody></table></div>`;
}

function linesOf(text: string): { readonly lines: readonly string[]; readonly cut: boolean } {
  const shown = headOf(text, LONGEST_SIDE);
  const lf = shown.replaceAll("\r\n", "\n");
  const lines = lf === "" ? [] : (lf.endsWith("\n") ? lf.slice(0, -1) : lf).split("\n");
  return { lines, cut: shown.length < text.length };
}

const SIGNS = { same: " ", removed: "−", added: "+" } as const;

function rowMarkup(row: DiffRow, offset: number): Markup {
  if (row.kind === "gap") return html`<tr class="gap"><td colspan="4">⋯ ${count(row.count, "equal line")}</td></tr>`;
  const { kind, old, now } = row;
  const number = (at: number | undefined): Markup => html`<td class="n">${at === undefined ? "" : at + offset}</td>`;
  return html`<tr class="${kind}">${number(old)}${number(now)}<td class="sign">${SIGNS[kind]}</td><td class="line">${segmentsMarkup(row.segments(), kind)}</td></tr>`;
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
