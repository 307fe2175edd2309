import { field, type Json } from "@sluice/core";
import { headOf, revealed, tailOf, withoutTabs } from "./clean.ts";
import {
  type Comparison,
  compareLines,
  DIFF_LOOKS,
  type DiffRow,
  diffRowCount,
  diffRows,
  type Segment,
} from "./diff-compare.ts";
import { moreCharacters, moreLine } from "./fold.ts";
import type { Line, Span, Style } from "./line.ts";
import { cut, wrap } from "./width.ts";

/** The change of an Edit or Write call, from its arguments alone. */
export interface CallChange extends Comparison {
  readonly path: string;
  readonly old: readonly string[];
  readonly now: readonly string[];
  /** Whether it is all of a file, so that line numbers are known. */
  readonly isWhole: boolean;
  readonly notes: readonly string[];
}

/** Undefined for other tools and other arguments. */
export function changeOf(tool: string, input: Json | undefined): CallChange | undefined {
  const path = field(input, "file_path");
  const isWhole = tool === "Write";
  const [before, after] = isWhole
    ? ["", field(input, "content")]
    : [field(input, "old_string"), field(input, "new_string")];
  if (typeof path !== "string" || typeof before !== "string" || typeof after !== "string") return undefined;
  if (!isWhole && tool !== "Edit") return undefined;
  const [old, now] = [textLines(before), textLines(after)];
  const compared = compareLines(old.lines, now.lines);
  const isEverywhere = !isWhole && field(input, "replace_all") === true;
  const notes = [
    isWhole ? "the whole file" : "",
    isEverywhere ? "every occurrence" : "",
    compared.exact ? "" : "too large to compare line by line",
    old.ends !== "" && now.ends !== "" && old.ends !== now.ends ? `line endings become ${now.ends}` : "",
    // Edit can replace part of a line, so a missing line break at the end means nothing.
    isWhole && after !== "" && !after.endsWith("\n") ? "no line break at the end" : "",
    compared.added + compared.removed === 0 ? "no line changes" : "",
  ];
  return { ...compared, path, old: old.lines, now: now.lines, isWhole, notes: notes.filter((note) => note !== "") };
}

/** The lines of a text, without the CR if all of them end in CR LF. */
function textLines(text: string): { readonly lines: readonly string[]; readonly ends: "" | "LF" | "CR LF" } {
  if (!text.includes("\n")) return { lines: text === "" ? [] : [text], ends: "" };
  const isCrlf = !/(?:^|[^\r])\n/.test(text);
  const lines = (isCrlf ? text.replaceAll("\r\n", "\n") : text).split("\n");
  if (lines.at(-1) === "") lines.pop();
  return { lines, ends: isCrlf ? "CR LF" : "LF" };
}

export interface DiffOptions {
  /** Columns. */
  readonly width: number;
  /** Unchanged lines around each change. Default 3. */
  readonly context?: number;
  /** Default 400; further lines are only counted. */
  readonly maxLines?: number;
}

const MOST_LINES = 400;
/** Rows of one line. */
const MOST_ROWS = 12;
/** UTF-16 units shown of the equal beginning of a long line. */
const LEAD = 60;
/** Columns below which lines have no numbers. */
const NARROW = 24;

/** The change of an Edit or Write call: counts, changed words, invisible characters marked. Undefined as for `changeOf`. */
export function editDiff(tool: string, input: Json | undefined, options: DiffOptions): readonly Line[] | undefined {
  const { width, context = 3, maxLines = MOST_LINES } = options;
  const change = changeOf(tool, input);
  if (change === undefined) return undefined;
  const { runs, old, now, isWhole, added, removed } = change;
  const lines = [...header(change, width)];
  const digits = isWhole && width >= NARROW ? String(now.length).length : 0;
  // The last line is for the note about the rest.
  const room = Math.max(0, maxLines - 1);
  let shownRows = 0;
  for (const row of added + removed === 0 ? [] : diffRows(runs, old, now, context)) {
    lines.push(...rowLines(row, digits, width));
    if (lines.length > maxLines) break;
    if (row.kind !== "gap" && lines.length <= room) shownRows += 1;
  }
  if (lines.length <= maxLines) return lines;
  return [...lines.slice(0, room), cut(moreLine(diffRowCount(runs, context) - shownRows), width)];
}

function header({ path, added, removed, notes }: CallChange, width: number): readonly Line[] {
  const counts: Span[] = [
    { text: `  +${added}`, style: "added" },
    { text: ` −${removed}`, style: "removed" },
  ];
  const dimmed: Span[] = notes.map((note) => ({ text: ` · ${note}`, style: "dim" }));
  return wrap([...revealed(path, "strong"), ...counts, ...dimmed], width, 6);
}

/** A row of the diff. `digits` is the width of its number; 0 without numbers. */
function rowLines(row: DiffRow, digits: number, width: number): readonly Line[] {
  if (row.kind === "gap") return [cut([{ text: `⋯ ${row.count} unchanged lines`, style: "dim" }], width)];
  const { sign, style, word } = DIFF_LOOKS[row.kind];
  const number = digits === 0 ? "" : `${String(row.number).padStart(digits)} `;
  const gutter = Math.min(number.length + sign.length, Math.max(0, width - 2));
  const inner = Math.max(2, width - gutter);
  const rows = wrap(contentOf(row.segments(), style, word, inner * MOST_ROWS), inner);
  const head: readonly Span[] = [
    { text: number, style: "dim" },
    { text: sign, style },
  ];
  const below: Span = { text: " ".repeat(gutter) };
  return rows.map((content, at) => cut([...(at === 0 ? head : [below]), ...content], width));
}

/** The first `room` UTF-16 units of a line as spans. */
function contentOf(segments: readonly Segment[], style: Style, word: Style, room: number): Line {
  const spans: Span[] = [];
  let left = room;
  let rest = 0;
  for (const [index, { text, changed }] of segments.entries()) {
    let part = text;
    // Only the end of a long equal beginning is shown.
    if (index === 0 && !changed && segments.length > 1 && text.length > LEAD * 4) {
      part = tailOf(text, LEAD);
      spans.push({ text: `… ${text.length - part.length} characters … `, style: "dim" });
    }
    const shown = headOf(part, left);
    left -= shown.length;
    rest += part.length - shown.length;
    spans.push(...revealed(changed ? visibleBlanks(shown) : withoutTabs(shown), changed ? word : style));
  }
  return [...spans, ...moreCharacters(rest)];
}

/** Makes a segment of only blanks visible. */
function visibleBlanks(text: string): string {
  return /^[ \t]+$/.test(text) ? text.replaceAll(" ", "·").replaceAll("\t", "→   ") : withoutTabs(text);
}
