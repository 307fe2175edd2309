import { type BoundaryItem, span, stateLabel, type TranscriptItem } from "@sluice/view";
import { cut, fold, type Line, markdown, type Style, spanOf, wrap } from "@sluice/view/text";
import { callCard } from "./call-card.ts";
import { answerRows, commandRows, searchableCommand } from "./kind-rows.ts";
import { textBlock } from "./text-block.ts";

export interface ItemOptions {
  /** Columns; no row is wider. */
  readonly width: number;
  /** Shows only the beginning of long items. */
  readonly folded: boolean;
}

/** Rows of one text. */
const MAX_ROWS = 5_000;
/** Rows of a thought that is folded. */
const FOLDED_THOUGHT = 3;
/** UTF-16 units of one text that are laid out. */
const MAX_TEXT = 400_000;

const MARGIN = "  ";

/** Columns for a model's text. */
export function textWidth(width: number): number {
  return Math.max(1, width - MARGIN.length);
}

/** A row of a model's text, which is indented: only the app's own rows begin at the edge. */
export function textRow(line: Line): Line {
  return line.length === 0 ? line : [span(MARGIN), ...line];
}

/** The rows of an item; texts begin with an empty row, the calls after them do not. */
export function transcriptLines(item: TranscriptItem, options: ItemOptions): readonly Line[] {
  const width = Math.max(1, options.width);
  return rowsOf(item, { ...options, width }).map((line) => cut(line, width));
}

function rowsOf(item: TranscriptItem, options: ItemOptions): readonly Line[] {
  switch (item.kind) {
    case "text":
      return [[], ...markdown(item.text, textWidth(options.width), MAX_ROWS).map(textRow)];
    case "reasoning":
      return [[], ...thoughtLines(item.text, options)];
    case "message":
      return messageLines(item.by, item.text, options.width);
    case "boundary":
      return boundaryLines(item, options.width);
    case "call":
      return callCard(item, options);
    case "command":
      return commandRows(item, options);
    case "answer":
      return answerRows(item, options);
  }
}

/** The text that a search covers, also if it is folded. */
export function searchable(item: TranscriptItem): string {
  if (item.kind === "command") return searchableCommand(item);
  if (item.kind === "answer") return JSON.stringify(item.value);
  if (item.kind !== "call") return item.text;
  const { tool, input, output, summary = "", why = "" } = item;
  const parts = [tool, summary, why, input === undefined ? "" : JSON.stringify(input)];
  return [...parts, typeof output === "string" ? output : JSON.stringify(output ?? "")].join("\n");
}

/** Whether folding hides anything of an item. */
export function isFoldable({ kind }: TranscriptItem): boolean {
  return kind === "call" || kind === "reasoning" || kind === "command" || kind === "answer";
}

/** The rows of a folded item if they are known without a layout: a call without a reason is one row. */
export function foldedHeight(item: TranscriptItem): number | undefined {
  if (item.kind !== "call") return undefined;
  const { state } = item;
  return state === "ok" || state === "proposed" || state === "running" ? 1 : undefined;
}

/** A thought, dim; folded to its beginning. */
export function thoughtLines(text: string, { width, folded }: ItemOptions): readonly Line[] {
  // Folded text is not laid out.
  const most = folded ? (FOLDED_THOUGHT + 1) * width * 2 : MAX_TEXT;
  const thought = text.trim().replaceAll(/\n\s*\n/g, "\n");
  const rows = textBlock(thought, { width, style: "dim", most });
  const visible = folded ? fold(rows, FOLDED_THOUGHT, "Ctrl+O") : rows;
  return [[span("✻ thinking", "dim")], ...visible.map((line): Line => [span("  "), ...line])];
}

function messageLines(by: string, text: string, width: number): readonly Line[] {
  const rows = textBlock(text, { width, most: MAX_TEXT });
  return [
    [],
    [span("❯ ", "accent"), span(stateLabel(by), "strong")],
    ...rows.map((line): Line => [span("  "), ...line]),
  ];
}

/** How notes and the app's notices begin. */
export const NOTE_SIGNS: Readonly<Record<BoundaryItem["tone"], readonly [sign: string, style: Style]>> = {
  plain: ["·", "dim"],
  good: ["✔", "good"],
  bad: ["✖", "bad"],
  notice: ["!", "notice"],
};

/** An attempt is a title; a note follows its sign. */
function boundaryLines({ rank, text, tone }: BoundaryItem, width: number): readonly Line[] {
  const [sign, style] = NOTE_SIGNS[tone];
  if (rank === "note") {
    const rows = wrap([spanOf(text, style)], textWidth(width), 3);
    return rows.map((row, index) => [span(index === 0 ? `${sign} ` : MARGIN, style), ...row]);
  }
  // Not a full rule: in a narrower terminal it would wrap.
  return [[], [span("── ", "dim"), spanOf(text, tone === "plain" ? "strong" : style), span(" ──", "dim")]];
}
