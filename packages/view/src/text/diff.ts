import { field, type Json } from "@sluice/core";
import { headOf, revealed, tailOf, withoutTabs } from "./clean.ts";
import { compareLines, type DiffRow, diffRowCount, diffRows, type Kind, type Segment } from "./diff-compare.ts";
import { moreLine } from "./fold.ts";
import type { Line, Span, Style } from "./line.ts";
import { cut, wrap } from "./width.ts";

/** A change of one file; `undefined` for a file that does not exist before or after. */
export interface FileChange {
  readonly path: string;
  readonly before: string | undefined;
  readonly after: string | undefined;
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
/** Columns below which each line has only one number. */
const NARROW = 60;

/** A change for review: counts, numbered lines, changed words, invisible characters marked. */
export function diffLines(change: FileChange, options: DiffOptions): readonly Line[] {
  const { before, after } = change;
  const note = before === undefined ? "new file" : after === undefined ? "deleted" : undefined;
  return render({ ...change, notes: note === undefined ? [] : [note], numbered: true }, options);
}

/**
 * The change of an Edit or Write call, from its arguments alone, so without line numbers for Edit. Undefined for other tools and
 * other arguments.
 */
export function editDiff(tool: string, input: Json | undefined, options: DiffOptions): readonly Line[] | undefined {
  const path = field(input, "file_path");
  if (typeof path !== "string") return undefined;
  if (tool === "Write") {
    const content = field(input, "content");
    if (typeof content !== "string") return undefined;
    return render({ path, before: undefined, after: content, notes: ["the whole file"], numbered: true }, options);
  }
  const [before, after] = [field(input, "old_string"), field(input, "new_string")];
  if (tool !== "Edit" || typeof before !== "string" || typeof after !== "string") return undefined;
  const notes = field(input, "replace_all") === true ? ["every occurrence"] : [];
  // Edit can replace part of a line, so a missing line break at the end means nothing.
  return render({ path, before, after, notes, numbered: false, isPart: true }, options);
}

interface Shown extends FileChange {
  readonly notes: readonly string[];
  readonly numbered: boolean;
  readonly isPart?: boolean;
}

function render(shown: Shown, { width, context = 3, maxLines = MOST_LINES }: DiffOptions): readonly Line[] {
  const old = textLines(shown.before);
  const now = textLines(shown.after);
  const { runs, added, removed, exact } = compareLines(old.lines, now.lines);
  const notes = [
    ...shown.notes,
    ...(exact ? [] : ["too large to compare line by line"]),
    ...lineEndNotes(old, now, shown),
    ...(added + removed === 0 ? ["no line changes"] : []),
  ];
  const lines: Line[] = [...header(shown.path, added, removed, notes, width)];
  if (added + removed === 0) return lines.slice(0, maxLines);
  const most = shown.numbered ? Math.max(old.lines.length, now.lines.length) : 0;
  const gutter = gutterOf(most, old.lines.length > 0 && now.lines.length > 0, width);
  // The last line is for the note about the rest.
  const room = Math.max(0, maxLines - 1);
  let shownRows = 0;
  for (const row of diffRows(runs, old.lines, now.lines, context)) {
    const rows = rowLines(row, gutter, width);
    lines.push(...rows);
    if (lines.length > maxLines) break;
    if (row.kind !== "gap" && lines.length <= room) shownRows += 1;
  }
  if (lines.length <= maxLines) return lines;
  return [...lines.slice(0, room), cut(moreLine(diffRowCount(runs, context) - shownRows), width)];
}

function header(
  path: string,
  added: number,
  removed: number,
  notes: readonly string[],
  width: number,
): readonly Line[] {
  const counts: Span[] = [
    { text: `  +${added}`, style: "added" },
    { text: ` −${removed}`, style: "removed" },
  ];
  const dimmed: Span[] = notes.map((note) => ({ text: ` · ${note}`, style: "dim" }));
  return wrap([...revealed(path, "strong"), ...counts, ...dimmed], width, 6);
}

interface TextLines {
  readonly lines: readonly string[];
  readonly ends: "lf" | "crlf" | undefined;
  /** Whether the last line ends in a line break. */
  readonly ended: boolean;
}

function textLines(text: string | undefined): TextLines {
  if (text === undefined || text === "") return { lines: [], ends: undefined, ended: true };
  const ended = text.endsWith("\n");
  const lines = (ended ? text.slice(0, -1) : text).split("\n");
  const last = ended ? lines.length : lines.length - 1;
  const crlf = last > 0 && lines.every((line, at) => at >= last || line.endsWith("\r"));
  const bare = crlf ? lines.map((line, at) => (at < last ? line.slice(0, -1) : line)) : lines;
  return { lines: bare, ends: last === 0 ? undefined : crlf ? "crlf" : "lf", ended };
}

function lineEndNotes(old: TextLines, now: TextLines, { before, after, isPart = false }: Shown): readonly string[] {
  const notes: string[] = [];
  if (old.ends !== undefined && now.ends !== undefined && old.ends !== now.ends) {
    notes.push(now.ends === "crlf" ? "line endings become CR LF" : "line endings become LF");
  }
  if (isPart) return notes;
  if (after !== undefined && !now.ended && (before === undefined || old.ended)) notes.push("no line break at the end");
  if (before !== undefined && after !== undefined && !old.ended && now.ended) notes.push("line break added at the end");
  return notes;
}

interface Gutter {
  /** Digits of one number; 0 without numbers. */
  readonly digits: number;
  readonly both: boolean;
  readonly width: number;
}

function gutterOf(most: number, twoSides: boolean, width: number): Gutter {
  const digits = most === 0 || width < 24 ? 0 : String(most).length;
  const both = twoSides && width >= NARROW;
  const numbers = digits === 0 ? 0 : both ? digits * 2 + 2 : digits + 1;
  return { digits, both, width: Math.min(numbers + 2, Math.max(0, width - 2)) };
}

const LOOKS = {
  same: { mark: "  ", style: "plain", word: "plain" },
  removed: { mark: "- ", style: "removed", word: "removedWord" },
  added: { mark: "+ ", style: "added", word: "addedWord" },
} as const satisfies Record<Kind, { mark: string; style: Style; word: Style }>;

function rowLines(row: DiffRow, gutter: Gutter, width: number): readonly Line[] {
  if (row.kind === "gap") {
    return [
      cut(
        [{ text: `${" ".repeat(Math.max(0, gutter.width - 2))}⋯ ${row.count} unchanged lines`, style: "dim" }],
        width,
      ),
    ];
  }
  const { mark, style, word } = LOOKS[row.kind];
  const inner = Math.max(2, width - gutter.width);
  const numbers: Span = { text: numbersOf(row.old, row.now, gutter), style: "dim" };
  const rows = wrap(contentOf(row.segments(), style, word, inner * MOST_ROWS), inner);
  return rows.map((content, at) =>
    cut([...(at === 0 ? [numbers, { text: mark, style }] : [{ text: " ".repeat(gutter.width) }]), ...content], width),
  );
}

function numbersOf(old: number | undefined, now: number | undefined, { digits, both }: Gutter): string {
  if (digits === 0) return "";
  const shown = (number: number | undefined): string => String(number ?? "").padStart(digits);
  return both ? `${shown(old)} ${shown(now)} ` : `${shown(now ?? old)} `;
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
  return rest === 0 ? spans : [...spans, { text: ` … ${rest} characters more`, style: "dim" }];
}

/** Makes a segment of only blanks visible. */
function visibleBlanks(text: string): string {
  return /^[ \t]+$/.test(text) ? text.replaceAll(" ", "·").replaceAll("\t", "→   ") : withoutTabs(text);
}
