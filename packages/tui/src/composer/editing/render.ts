import { cut, type Line, type Span, spanOf, widthOf } from "@sluice/view/text";
import type { Palette } from "../completion/completion.ts";
import { type Composer, hasMargin, textColumns } from "../composer.ts";
import { matchIn, type Search } from "../history/history.ts";
import { endOf, lineOf } from "./cells.ts";
import { type Editor, editorOf, moveTo } from "./editor.ts";
import { layOut } from "./layout.ts";

export interface RenderOptions {
  readonly width: number;
  /** At least 1. */
  readonly maxRows: number;
  /** Shown while there is no text. */
  readonly placeholder: string;
}

export interface Rendered {
  readonly lines: readonly Line[];
  readonly cursor: { readonly row: number; readonly column: number };
}

const MAX_CHOICES = 8;
const PROMPT = "❯ ";

/** The composer on the screen: text, search or notice, and palette. */
export function render(state: Composer, { width, maxRows, placeholder }: RenderOptions): Rendered {
  const room = Math.max(1, maxRows);
  const { search, notice, palette } = state;
  if (search !== undefined) return renderSearch(state, search, width, room);
  const notices = notice === undefined || room < 2 ? [] : [cut([spanOf(`! ${notice}`, "notice")], width)];
  const text = textRows(state.editor, width, placeholder);
  const free = room - notices.length;
  const wanted = Math.min(palette?.choices.length ?? 0, MAX_CHOICES);
  const rows = Math.min(text.rows.length, Math.max(1, free - wanted, Math.floor(free / 3)));
  const shown = visibleRows(text, rows, width);
  const choices = palette === undefined ? [] : paletteLines(palette, width, Math.min(wanted, free - rows));
  return { lines: [...shown.lines, ...notices, ...choices], cursor: shown.cursor };
}

interface TextRows {
  /** Without the prompt. */
  readonly rows: readonly Line[];
  readonly cursor: { readonly row: number; readonly column: number };
}

function textRows(editor: Editor, width: number, placeholder: string): TextRows {
  const columns = textColumns(width);
  if (editor.text === "") {
    return { rows: [cut([spanOf(placeholder, "dim")], columns)], cursor: { row: 0, column: 0 } };
  }
  const { rows, cursor } = layOut(editor, editor.cursor, columns);
  return { rows: rows.map((row) => lineOf(row.cells)), cursor };
}

/** The rows around the cursor that fit, after the prompt or a mark for more rows. */
function visibleRows({ rows, cursor }: TextRows, room: number, width: number): Rendered {
  const first = Math.max(0, Math.min(cursor.row - Math.floor(room / 2), rows.length - room));
  const last = Math.min(rows.length, first + room) - 1;
  const margin = hasMargin(width);
  const lines = rows.slice(first, last + 1).map((row, index): Line => {
    const number = first + index;
    const mark = index === 0 && first > 0 ? "↑ " : number === last && last < rows.length - 1 ? "↓ " : "  ";
    const lead: Span = number === 0 ? { text: PROMPT, style: "accent" } : { text: mark, style: "dim" };
    return margin ? [lead, ...row] : row;
  });
  return { lines, cursor: { row: cursor.row - first, column: cursor.column + (margin ? PROMPT.length : 0) } };
}

/** The found entry from its match on, or the text, above the search line. */
function renderSearch(state: Composer, { query, found }: Search, width: number, room: number): Rendered {
  const entry = found === undefined ? undefined : state.history.entries[found];
  const isMissed = query !== "" && found === undefined;
  const label = isMissed ? "no earlier input contains: " : "search earlier inputs: ";
  const start = cut([{ text: label, style: isMissed ? "notice" : "accent" }], Math.max(0, width - 12));
  const line = [...start, { text: endOf(query, Math.max(0, width - widthOf(start) - 1)) }];
  const fitting = cut(line, Math.max(0, width - 1));
  const shown = entry === undefined ? undefined : editorOf(entry);
  const editor =
    shown?.ok === true ? moveTo(shown.editor, matchIn(shown.editor.text, query)?.start ?? 0) : state.editor;
  const text = textRows(editor, width, "");
  const above = room < 2 ? [] : visibleRows(text, Math.min(room - 1, text.rows.length), width).lines;
  return { lines: [...above, fitting], cursor: { row: above.length, column: widthOf(fitting) } };
}

/** The choices around the chosen one. */
function paletteLines(palette: Palette, width: number, room: number): readonly Line[] {
  if (room < 1) return [];
  const { choices, chosen, kind } = palette;
  const first = Math.max(0, Math.min(chosen - Math.floor(room / 2), choices.length - room));
  const shown = choices.slice(first, first + room);
  const columns = Math.max(1, width - 2);
  const hasWords = shown.some((choice) => (choice.description ?? "") !== "");
  const most = hasWords ? Math.max(1, Math.floor(columns * 0.5)) : columns;
  const labels = shown.map((choice) => endOf(kind === "command" ? `/${choice.value}` : choice.value, most));
  const label = Math.max(...labels.map((text) => widthOf(text)));
  return shown.map((choice, index) => {
    const isChosen = first + index === chosen;
    const name = labels[index] ?? "";
    const words = choice.description ?? "";
    const gap = " ".repeat(label - widthOf(name) + 2);
    const hasCount = isChosen && choices.length > room && width > 20;
    const count = hasCount ? `  ${chosen + 1}/${choices.length}` : "";
    const line: Span[] = [
      isChosen ? { text: PROMPT, style: "selected" } : { text: "  " },
      { text: name, style: isChosen ? "selected" : "plain" },
      ...(words === "" ? [] : [{ text: gap }, spanOf(words.slice(0, 1_000), "dim")]),
    ];
    return hasCount ? [...cut(line, width - count.length), { text: count, style: "dim" }] : cut(line, width);
  });
}
