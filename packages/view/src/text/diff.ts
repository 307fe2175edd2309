import { field, type Json } from "@sluice/core";
import { headOf, revealed, tailOf, withoutTabs } from "./clean.ts";
import { compareLines, type Kind, type Run, type Segment, type WordMarks, wordMarks } from "./diff-compare.ts";
import { moreLine } from "./fold.ts";
import type { Line, Span, Style } from "./line.ts";
import { cut, wrap } from "./width.ts";

/** A change of one file. `undefined` is no file: then it is created or deleted. */
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
  /** Default 400. What is more is told as a number of lines. */
  readonly maxLines?: number;
}

const MOST_LINES = 400;
/** Rows of one line that are shown. */
const MOST_ROWS = 12;
/** What is the same before the first difference of a long line: so much of it is shown. */
const LEAD = 60;
/** Columns below which one number a line has to do. */
const NARROW = 60;

/** A change as a person reviews it: counts, numbered lines, words that changed, everything unseen made visible. */
export function diffLines(change: FileChange, options: DiffOptions): readonly Line[] {
  const { before, after } = change;
  const note = before === undefined ? "new file" : after === undefined ? "deleted" : undefined;
  return render({ ...change, notes: note === undefined ? [] : [note], numbered: true }, options);
}

/**
 * What a call of Edit or Write would change, from its arguments alone: without line numbers for Edit, since nobody looked where
 * in the file it is. Undefined where the arguments are not of that shape.
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
  // What Edit replaces may be part of a line: whether it ends in a line break says nothing about the file.
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
  // One line is kept for what is said about the rest.
  const room = Math.max(0, maxLines - 1);
  let shownRows = 0;
  for (const row of rowsOf(runs, old.lines, now.lines, context)) {
    const rows = rowLines(row, gutter, width);
    lines.push(...rows);
    if (lines.length > maxLines) break;
    if (row.kind !== "gap" && lines.length <= room) shownRows += 1;
  }
  if (lines.length <= maxLines) return lines;
  return [...lines.slice(0, room), cut(moreLine(lineCount(runs, context) - shownRows), width)];
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
  const said: Span[] = notes.map((note) => ({ text: ` · ${note}`, style: "dim" }));
  return wrap([...revealed(path, "strong"), ...counts, ...said], width, 6);
}

interface TextLines {
  readonly lines: readonly string[];
  readonly ends: "lf" | "crlf" | undefined;
  /** Whether the last line is ended. */
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
    notes.push(now.ends === "crlf" ? "line ends become CR LF" : "line ends become LF");
  }
  if (isPart) return notes;
  if (after !== undefined && !now.ended && (before === undefined || old.ended)) notes.push("no line break at the end");
  if (before !== undefined && after !== undefined && !old.ended && now.ended) notes.push("line break added at the end");
  return notes;
}

type Row =
  | { readonly kind: "gap"; readonly count: number }
  | { readonly kind: Kind; readonly old?: number; readonly now?: number; readonly segments: () => readonly Segment[] };

/** What there is to show, in order; the text of a row is only looked at when it is wanted. */
function* rowsOf(
  runs: readonly Run[],
  old: readonly string[],
  now: readonly string[],
  context: number,
): Generator<Row> {
  let marks: WordMarks | undefined;
  for (const [index, run] of runs.entries()) {
    if (run.kind === "same") {
      marks = undefined;
      yield* sameRows(run, old, index > 0 ? context : 0, index < runs.length - 1 ? context : 0);
      continue;
    }
    const next = runs[index + 1];
    if (run.kind === "removed" && next?.kind === "added") {
      marks = wordMarks(old.slice(run.oldAt, run.oldAt + run.count), now.slice(next.newAt, next.newAt + next.count));
    }
    const found = marks;
    for (let at = 0; at < run.count; at += 1) {
      if (run.kind === "removed") {
        const whole = { text: old[run.oldAt + at] ?? "", changed: false };
        yield { kind: "removed", old: run.oldAt + at + 1, segments: () => found?.old(at) ?? [whole] };
      } else {
        const whole = { text: now[run.newAt + at] ?? "", changed: false };
        yield { kind: "added", now: run.newAt + at + 1, segments: () => found?.now(at) ?? [whole] };
      }
    }
  }
}

function* sameRows(run: Run, old: readonly string[], head: number, tail: number): Generator<Row> {
  const hidden = hiddenOf(run, head, tail);
  for (let at = 0; at < run.count; at += 1) {
    if (hidden > 0 && at === head) {
      yield { kind: "gap", count: hidden };
      at += hidden - 1;
      continue;
    }
    const text = old[run.oldAt + at] ?? "";
    yield {
      kind: "same",
      old: run.oldAt + at + 1,
      now: run.newAt + at + 1,
      segments: () => [{ text, changed: false }],
    };
  }
}

/** A gap takes a row itself: a single line is shown instead. */
function hiddenOf(run: Run, head: number, tail: number): number {
  const hidden = run.count - head - tail;
  return hidden > 1 ? hidden : 0;
}

/** The rows of `rowsOf` without gaps, counted without making them. */
function lineCount(runs: readonly Run[], context: number): number {
  return runs.reduce((sum, run, index) => {
    if (run.kind !== "same") return sum + run.count;
    return sum + run.count - hiddenOf(run, index > 0 ? context : 0, index < runs.length - 1 ? context : 0);
  }, 0);
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

function rowLines(row: Row, gutter: Gutter, width: number): readonly Line[] {
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

/** The spans of a line, as much of it as `room` UTF-16 units. */
function contentOf(segments: readonly Segment[], style: Style, word: Style, room: number): Line {
  const spans: Span[] = [];
  let left = room;
  let rest = 0;
  for (const [index, { text, changed }] of segments.entries()) {
    let part = text;
    // On a long line what is the same in front of the change is not what anybody looks for.
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

/** A change of blanks alone would not be seen. */
function visibleBlanks(text: string): string {
  return /^[ \t]+$/.test(text) ? text.replaceAll(" ", "·").replaceAll("\t", "→   ") : withoutTabs(text);
}
