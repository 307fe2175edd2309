import { field, isJsonObject, type Json, type OpenRequest } from "@sluice/core";
import { structuredPatch } from "diff";
import { textAt } from "../../fields.ts";
import type { Line, Style } from "../text/line.ts";
import { BAR, BAR_COLUMNS, exactRows, sentence } from "./verbatim.ts";

/** What is in a file now, as far as somebody may look. */
export type FileNow =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "absent" }
  /** Why it is not compared. */
  | { readonly kind: "unread"; readonly why: string };

/** The file that a request for leave would write: the path it was judged by, absolute and after links. */
export function fileToRead({ kind, body }: OpenRequest): string | undefined {
  const tool = textAt(body, "tool");
  if (kind !== "grantStageTool" || (tool !== "Edit" && tool !== "Write")) return undefined;
  const touches = field(body, "touches");
  if (!Array.isArray(touches)) return undefined;
  const written = touches.filter((touch: Json) => textAt(touch, "access") === "write");
  return written.length === 1 ? textAt(written[0], "path") : undefined;
}

/** Lines around a change that are shown with it. */
const CONTEXT = 3;
/** Changed lines up to which two texts are compared; beyond, comparing takes longer than anybody waits. */
const MOST_CHANGES = 4_000;
const CHANGE_MS = 250;
/** Columns below which lines stand without their numbers. */
const NUMBERED_FROM = 40;

/** An Edit or a Write as a diff against what is in the file now; undefined for any other call, and for arguments of another shape. */
export function changeLines(
  tool: string,
  input: Json,
  file: FileNow | undefined,
  width: number,
): readonly Line[] | undefined {
  if (!isJsonObject(input)) return undefined;
  const { file_path: path, content, old_string: old, new_string: now, replace_all: every, ...rest } = input;
  // Nothing that is given may be missing from what is shown.
  if (typeof path !== "string" || Object.keys(rest).length > 0) return undefined;
  if (tool === "Write" && typeof content === "string" && old === undefined && now === undefined && every === undefined)
    return [...exactRows(path, width, BAR, "strong"), ...writeLines(content, file, width)];
  if (tool !== "Edit" || typeof old !== "string" || typeof now !== "string" || content !== undefined) return undefined;
  if (every !== undefined && typeof every !== "boolean") return undefined;
  return [...exactRows(path, width, BAR, "strong"), ...editLines({ old, now, every: every === true }, file, width)];
}

function writeLines(content: string, file: FileNow | undefined, width: number): readonly Line[] {
  if (file?.kind === "text") {
    const { text, note } = inLf(file.text);
    const next = note === "" ? content : lf(content);
    const hunks = diffLines(text, next, width);
    if (text === next) return sentence("It would write what is in the file already.", width, "dim");
    if (hunks !== undefined) return [...sentence(`It replaces the whole file${note}:`, width, "dim"), ...hunks];
  }
  const said =
    file?.kind === "absent"
      ? "A new file with:"
      : `The whole content${file?.kind === "unread" ? ` (not compared with the file: ${file.why})` : ""}:`;
  return [...sentence(said, width, "dim"), ...signed(content, "+", width)];
}

interface Edit {
  readonly old: string;
  readonly now: string;
  readonly every: boolean;
}

function editLines({ old, now, every }: Edit, file: FileNow | undefined, width: number): readonly Line[] {
  const where = every ? "everywhere in the file" : "in the one place where it stands";
  const plain = (why: string): readonly Line[] => [
    ...sentence(`It replaces, ${where}${why}:`, width, "dim"),
    ...signed(old, "-", width),
    ...sentence("with:", width, "dim"),
    ...signed(now, "+", width),
  ];
  if (file === undefined) return plain("");
  if (file.kind === "unread") return plain(` (not compared with the file: ${file.why})`);
  if (file.kind === "absent") return plain(" (there is no such file now, so it would fail)");
  const { text, note } = inLf(file.text);
  const [from, to] = note === "" ? [old, now] : [lf(old), lf(now)];
  const pieces = from === "" ? [] : text.split(from);
  if (pieces.length < 2) return plain(" (it does not stand in the file now, so it would fail)");
  if (pieces.length > 2 && !every) return plain(" (it stands there more than once now, so it would fail)");
  const hunks = diffLines(text, pieces.join(to), width);
  if (hunks === undefined) return plain("");
  const times = pieces.length - 1;
  const said = every ? `It changes every place, ${times} now${note}:` : `It changes one place${note}:`;
  return [...sentence(said, width, "dim"), ...hunks];
}

/** Files of CR LF lines are compared without the CR; the tools keep it. */
function inLf(text: string): { readonly text: string; readonly note: string } {
  const crlf = /\r\n/.test(text) && !/[^\r]\n/.test(text);
  return crlf ? { text: lf(text), note: " (its lines end in CR LF)" } : { text, note: "" };
}

function lf(text: string): string {
  return text.replaceAll("\r\n", "\n");
}

const STYLES: Readonly<Record<string, Style>> = { "+": "added", "-": "removed" };

function diffLines(before: string, after: string, width: number): readonly Line[] | undefined {
  const options = { context: CONTEXT, maxEditLength: MOST_CHANGES, timeout: CHANGE_MS };
  const patch = structuredPatch("", "", before, after, undefined, undefined, options);
  if (patch === undefined) return undefined;
  const digits = String(
    Math.max(...patch.hunks.map((hunk) => hunk.oldStart + hunk.oldLines + hunk.newLines), 1),
  ).length;
  const rows: Line[] = [];
  for (const hunk of patch.hunks) {
    if (rows.length > 0) rows.push([BAR, { text: "⋮", style: "dim" }]);
    let left = hunk.oldStart;
    let right = hunk.newStart;
    for (const line of hunk.lines) {
      const sign = line.charAt(0);
      const text = line.slice(1);
      if (sign === "\\") {
        rows.push([
          BAR,
          { text: "(no line break at the end)".slice(0, Math.max(0, width - BAR_COLUMNS)), style: "dim" },
        ]);
        continue;
      }
      rows.push(...signedRow(text, sign, width, sign === "+" ? right : left, digits));
      if (sign !== "+") left += 1;
      if (sign !== "-") right += 1;
    }
  }
  return rows;
}

function signedRow(text: string, sign: string, width: number, number: number, digits: number): readonly Line[] {
  const style = STYLES[sign] ?? "plain";
  const gutter = width < NUMBERED_FROM ? "" : `${String(number).padStart(digits)} `;
  const mark = { text: `${gutter}${sign} `, style: sign === " " ? "dim" : style } as const;
  return exactRows(text, width, BAR, style, mark);
}

function signed(text: string, sign: "+" | "-", width: number): readonly Line[] {
  const style = STYLES[sign] ?? "plain";
  return exactRows(text, width, BAR, style, { text: `${sign} `, style });
}
