import { field, isJsonObject, type Json, type OpenRequest } from "@sluice/core";
import { REDACTION_MARKER } from "@sluice/core/runtime";
import {
  BAR,
  compareLines,
  DIFF_LOOKS,
  diffRows,
  type Line,
  type Span,
  sentence,
  verbatim,
  verbatimLine,
} from "@sluice/view/text";
import { textAt } from "@sluice/view/words";
import { MOST_SHOWN } from "../user/approval-check.ts";

/** The current content of a file. */
export type FileNow =
  | { readonly kind: "text"; readonly text: string; readonly hiding: Hiding }
  | { readonly kind: "absent" }
  | { readonly kind: "unread"; readonly why: string };

/** The file that a call would write: the absolute path, with links resolved, that the gate checked. */
export function fileToRead({ kind, body }: OpenRequest): string | undefined {
  const tool = textAt(body, "tool");
  if (kind !== "grantStageTool" || (tool !== "Edit" && tool !== "Write")) return undefined;
  const touches = field(body, "touches");
  if (!Array.isArray(touches)) return undefined;
  const written = touches.filter((touch: Json) => textAt(touch, "access") === "write");
  return written.length === 1 ? textAt(written[0], "path") : undefined;
}

/** Unchanged lines shown around a change. */
const CONTEXT = 3;
/** Largest changed file that is compared, in UTF-16 units. */
const MAX_AFTER = 4_000_000;
/** Columns below which lines have no numbers. */
const NUMBERED_FROM = 40;

/** An Edit or a Write as a diff against the current file; undefined for other calls and for unexpected arguments. */
export function changeLines(
  tool: string,
  input: Json,
  file: FileNow | undefined,
  width: number,
): readonly Line[] | undefined {
  if (!isJsonObject(input)) return undefined;
  const { file_path: path, content, old_string: old, new_string: now, replace_all: every, ...rest } = input;
  // Every argument must be visible.
  if (typeof path !== "string" || Object.keys(rest).length > 0) return undefined;
  if (tool === "Write" && typeof content === "string" && old === undefined && now === undefined && every === undefined)
    return [...verbatim(path, width, "strong"), ...writeLines(content, file, width)];
  if (tool !== "Edit" || typeof old !== "string" || typeof now !== "string" || content !== undefined) return undefined;
  if (every !== undefined && typeof every !== "boolean") return undefined;
  return [...verbatim(path, width, "strong"), ...editLines({ old, now, every: every === true }, file, width)];
}

function writeLines(content: string, file: FileNow | undefined, width: number): readonly Line[] {
  if (file?.kind === "text") {
    const { text, note } = inLf(file.text);
    const next = note === "" ? content : lf(content);
    if (text === next) return sentence("The file already has this content.", width, "dim");
    const rows = compared(text, next, width, file.hiding);
    if (rows !== undefined) return [...sentence(`It replaces the whole file${note}:`, width, "dim"), ...rows];
  }
  const reason = file?.kind === "unread" ? file.why : file?.kind === "text" ? TOO_MUCH : undefined;
  const compare = reason === undefined ? "" : ` (not compared with the file: ${reason})`;
  const heading = file?.kind === "absent" ? "A new file with:" : `The whole content${compare}:`;
  return [...sentence(heading, width, "dim"), ...signed(content, "added", width)];
}

interface Edit {
  readonly old: string;
  readonly now: string;
  readonly every: boolean;
}

function editLines({ old, now, every }: Edit, file: FileNow | undefined, width: number): readonly Line[] {
  const where = every ? "everywhere in the file" : "at its only occurrence";
  const plain = (why: string): readonly Line[] => [
    ...sentence(`It replaces, ${where}${why}:`, width, "dim"),
    ...signed(old, "removed", width),
    ...sentence("with:", width, "dim"),
    ...signed(now, "added", width),
  ];
  if (file === undefined) return plain("");
  if (file.kind === "unread") return plain(` (not compared with the file: ${file.why})`);
  if (file.kind === "absent") return plain(" (the file does not exist, so the call would fail)");
  const { text, note } = inLf(file.text);
  const [from, to] = note === "" ? [old, now] : [lf(old), lf(now)];
  const pieces = from === "" ? [] : text.split(from);
  if (pieces.length < 2) return plain(" (the file does not contain it, so the call would fail)");
  if (pieces.length > 2 && !every) return plain(" (the file contains it more than once, so the call would fail)");
  const times = pieces.length - 1;
  // A short text with a million occurrences, replaced by a long one, can exceed the memory.
  if (text.length + times * (to.length - from.length) > MAX_AFTER)
    return plain(` (not compared with the file: ${TOO_MUCH})`);
  const heading = every ? `It changes all ${times} occurrences${note}:` : `It changes one occurrence${note}:`;
  const rows = compared(text, pieces.join(to), width, file.hiding);
  return rows === undefined
    ? plain(` (not compared with the file: ${TOO_MUCH})`)
    : [...sentence(heading, width, "dim"), ...rows];
}

/** Files with CR LF line ends are compared without the CR, which the tools keep. */
function inLf(text: string): { readonly text: string; readonly note: string } {
  const crlf = /\r\n/.test(text) && !/(?:^|[^\r])\n/.test(text);
  return crlf ? { text: lf(text), note: " (its lines end in CR LF)" } : { text, note: "" };
}

function lf(text: string): string {
  return text.replaceAll("\r\n", "\n");
}

const TOO_MUCH = "the change is too long";

/**
 * The whole diff of two texts; unchanged lines far from any change are counted instead. Lines of the file are masked, added
 * lines are shown as they are except for known secrets. Undefined if the diff is longer than a card shows.
 */
function compared(before: string, after: string, width: number, hiding: Hiding): readonly Line[] | undefined {
  const old = linesOf(before);
  const now = linesOf(after);
  const { runs } = compareLines(old.lines, now.lines);
  const oldLine = maskedLines(old.lines, hiding);
  const digits = width < NUMBERED_FROM ? 0 : String(Math.max(old.lines.length, now.lines.length)).length;
  const rows: Line[] = [];
  let shown = 0;
  for (const row of diffRows(runs, old.lines, now.lines, CONTEXT)) {
    if (row.kind === "gap") {
      rows.push([BAR, { text: `⋯ ${row.count} same`, style: "dim" }]);
      continue;
    }
    const { kind, number, text } = row;
    shown += text.length;
    if (shown > MOST_SHOWN) return undefined;
    const seen = kind === "added" ? hiding.known(text) : oldLine(number - 1);
    const segments = seen === text ? row.segments() : [{ text: seen, changed: false }];
    const { sign, style, word } = DIFF_LOOKS[kind];
    const gutter = digits === 0 ? "" : `${String(number).padStart(digits)} `;
    const mark: Span = { text: `${gutter}${sign}`, style: kind === "same" ? "dim" : style };
    const parts = segments.map((part) => ({ text: part.text, style: part.changed ? word : style }));
    rows.push(...verbatimLine(parts, width, mark));
  }
  return [...rows, ...endNotes(old.ended, now.ended, width)];
}

function linesOf(text: string): { readonly lines: readonly string[]; readonly ended: boolean } {
  if (text === "") return { lines: [], ended: true };
  const ended = text.endsWith("\n");
  return { lines: (ended ? text.slice(0, -1) : text).split("\n"), ended };
}

function endNotes(before: boolean, after: boolean, width: number): readonly Line[] {
  if (before === after) return [];
  return sentence(after ? "A line break is added at the end." : "The line break at the end is removed.", width, "dim");
}

/** Lines without a comparison. */
function signed(text: string, kind: "added" | "removed", width: number): readonly Line[] {
  const { sign, style } = DIFF_LOOKS[kind];
  return verbatim(text, width, style, { text: sign, style });
}

/** Masks secrets in the lines of a file that are shown around a change. */
export interface Hiding {
  /** Masks known secrets and texts that look like one. */
  text(text: string): string;
  /** Masks known secrets only. */
  known(text: string): string;
}

const KEY_BEGIN = /-----BEGIN [A-Z ]*PRIVATE KEY-----/;
const KEY_END = /-----END [A-Z ]*PRIVATE KEY-----/;

/** The masked lines of a file; each line of a private key block is masked. */
function maskedLines(lines: readonly string[], hiding: Hiding): (index: number) => string {
  const inKey = new Set<number>();
  let inside = false;
  for (const [index, line] of lines.entries()) {
    if (KEY_BEGIN.test(line)) inside = true;
    if (inside) inKey.add(index);
    if (KEY_END.test(line)) inside = false;
  }
  return (index) => (inKey.has(index) ? `${REDACTION_MARKER}private-key]` : hiding.text(lines[index] ?? ""));
}
