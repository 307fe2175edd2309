import { isQuestion, itemKeyOf, parseRequestId, parseSiblingId, rootRunId } from "@sluice/core/runtime";
import { timeLeft } from "@sluice/view";
import { cleanInline, cut, headOf, type Line, revealed, type Span, type Style, wrap } from "@sluice/view/text";
import { timeAt } from "@sluice/view/words";
import { lineOf } from "../composer/editing/cells.ts";
import { layOut } from "../composer/editing/layout.ts";
import {
  type Card,
  type CardStack,
  KIND_NAMES,
  type OpenCard,
  openCardOf,
  type ShownLines,
  seenOf,
  waitingCards,
} from "./card-stack.ts";
import type { Option } from "./form.ts";

export interface CardSize {
  readonly width: number;
  readonly height: number;
  /** Epoch milliseconds. */
  readonly now: number;
}

/** A drawn card. `key` and `shown` go to the stack once the frame is on the screen. */
export interface CardView {
  readonly lines: readonly Line[];
  readonly key: string;
  readonly shown: ShownLines;
  /** The cursor while a text is written. */
  readonly cursor?: { readonly row: number; readonly column: number };
}

/** The left edge of every row of a card; nothing else in the app begins with it. */
const EDGE = "▌";
const EDGE_COLUMNS = 2;
/** Rows for the text that is being written. */
const WRITTEN_ROWS = 3;
/** Largest share of the card's height for its choices. */
const OPTIONS_SHARE = 0.6;
/** UTF-16 units of a choice that are laid out; the body has long ones in full. */
const MAX_LABEL = 400;
/** Columns below which labels are short. */
const ROOMY = 48;

/** The width to pass to `bodyLines`, in columns. */
export function bodyWidth(width: number): number {
  return Math.max(4, width - EDGE_COLUMNS);
}

/** Rows of the whole card. */
export function cardHeight(stack: CardStack, body: readonly Line[]): number {
  const current = openCardOf(stack);
  return current === undefined ? 0 : body.length + current.card.form.options.length + WRITTEN_ROWS + 5;
}

/** The open card in at most `height` rows: its head and its options, and as much of its body as fits. */
export function cardLines(
  stack: CardStack,
  body: readonly Line[],
  { width, height, now }: CardSize,
): CardView | undefined {
  const current = openCardOf(stack);
  if (current === undefined || height < 1) return undefined;
  const { card, open } = current;
  const columns = bodyWidth(width);
  const written = open.writing ? writtenLines(open, columns) : undefined;
  const head = headLines(stack, card, columns, now).slice(0, height >= 12 ? 2 : 1);
  const foot = height >= 8 ? [footLine(card, open, columns)] : [];
  const fixed = head.length + foot.length + (written?.lines.length ?? 0);
  // What has to be read before an answer can be scrolled to in any card of three rows.
  const unread = seenOf(open, body.length) < body.length ? Math.min(2, body.length) : 0;
  const least = Math.max(1, Math.min(5, height - fixed - unread));
  const optionRows = Math.min(
    open.writing ? 1 : card.form.options.length,
    Math.max(least, Math.floor(height * OPTIONS_SHARE) - fixed, height - fixed - body.length),
  );
  const shown = windowOf(body.length, open.scroll, height - fixed - optionRows);
  const options = optionLines(
    card,
    open,
    optionRows,
    columns,
    body.length - Math.max(seenOf(open, body.length), shown.to),
  );
  const rows = [
    ...head,
    ...body.slice(shown.from, shown.to),
    ...(shown.partial ? [whereLine(shown)] : []),
    ...options,
    ...(written?.lines ?? []),
    ...foot,
  ];
  const lines = rows.slice(0, height).map((row) => edged(row, width, open.focused));
  const { from, to } = shown;
  const view = { lines, key: card.key, shown: { from, to, lines: body.length } };
  if (written === undefined) return view;
  const row = rows.length - foot.length - written.lines.length + written.cursor.row;
  return row < lines.length ? { ...view, cursor: { row, column: EDGE_COLUMNS + written.cursor.column } } : view;
}

/** One row if all waiting requests are deferred; else undefined. */
export function deferredLine(stack: CardStack, width: number): Line | undefined {
  const waiting = waitingCards(stack).length;
  if (stack.open !== undefined || waiting === 0) return undefined;
  const text = waiting === 1 ? "1 deferred request waits" : `${waiting} deferred requests wait`;
  return edged(
    [
      { text, style: "notice" },
      { text: " · Tab shows it", style: "dim" },
    ],
    width,
    false,
  );
}

function edged(row: Line, width: number, focused: boolean): Line {
  const edge: Span = { text: `${EDGE} `, style: focused ? "accent" : "notice" };
  return cut([edge, ...row], width);
}

interface Window extends ShownLines {
  /** Whether lines are hidden and a row says how many. */
  readonly partial: boolean;
}

function windowOf(lines: number, scroll: number, room: number): Window {
  if (room <= 0) return { from: 0, to: 0, lines, partial: false };
  if (lines <= room) return { from: 0, to: lines, lines, partial: false };
  const partial = room > 1;
  const rows = partial ? room - 1 : room;
  const from = Math.max(0, Math.min(scroll, lines - rows));
  return { from, to: from + rows, lines, partial };
}

function whereLine({ from, to, lines }: ShownLines): Line {
  const parts = [from > 0 ? `${from} above` : "", to < lines ? `${lines - to} below` : ""].filter(
    (part) => part !== "",
  );
  return [{ text: `… lines hidden: ${parts.join(", ")} · PgUp PgDn Home End`, style: "notice" }];
}

/** The kind of request, its position among the waiting ones, and its stage, tool, attempt, turn, proposal and branch. */
function headLines(stack: CardStack, card: Card, columns: number, now: number): readonly Line[] {
  const { request } = card;
  const waiting = waitingCards(stack);
  const position = waiting.findIndex((one) => one.key === card.key) + 1;
  const mark = stack.open?.focused === true ? "■" : "□";
  const count = waiting.length === 1 ? "" : ` ${position} of ${waiting.length} waiting`;
  const parts = askerOf(request);
  const line: Line = [
    { text: `${mark} ${KIND_NAMES[request.kind]}${count}`, style: "heading" },
    ...timeOf(request, now),
    ...parts.map((part, index): Span => ({ text: ` · ${part}`, style: index < 2 ? "strong" : "plain" })),
  ];
  return wrap(line, columns, 2);
}

/** How long a question with a deadline can still be answered. */
function timeOf({ body }: Card["request"], now: number): Line {
  const until = timeAt(body, "until");
  if (until === undefined) return [];
  return [{ text: until <= now ? " · time is up" : ` · ${timeLeft(until, now)} left`, style: "notice" }];
}

/** The stage and tool of a request, and its position in the run. */
export function askerOf(request: Card["request"]): readonly string[] {
  return partsOf(request).map(cleanInline);
}

function partsOf({ runId, requestId, kind, body }: Card["request"]): readonly string[] {
  const tool = kind === "grantStageTool" && typeof body.tool === "string" ? [body.tool.slice(0, 200)] : [];
  const root = rootRunId(runId);
  const run = [...(root === runId ? [] : [siblingOf(runId, requestId)]), `run ${root.slice(0, 100)}`];
  if (kind === "approveTransition" || kind === "humanState") {
    const execution = typeof body.executionId === "string" ? body.executionId : requestId;
    return [execution.slice(0, 200), ...run];
  }
  const call = parseRequestId(requestId.slice(0, 500));
  const [, turn] = /^t(\d+)\.c\d+$/.exec(call?.callId ?? "") ?? [];
  if (call === undefined || turn === undefined) return [...tool, requestId.slice(0, 200), ...run];
  const { state, visit, attempt, callId } = call;
  const entered = visit === 1 ? [] : [`visit ${visit}`];
  return [state, ...tool, ...entered, `attempt ${attempt}`, `turn ${turn}`, `proposal ${callId}`, ...run];
}

function siblingOf(runId: string, requestId: string): string {
  const key = parseSiblingId(runId)?.key ?? "";
  const isItem = itemKeyOf(runId, parseRequestId(requestId.slice(0, 500))?.state ?? key) !== undefined;
  return `${isItem ? "item" : "sibling"} ${headOf(key, 100)}`;
}

function optionLines(
  card: Card,
  { selected, focused }: OpenCard,
  rows: number,
  columns: number,
  unseen: number,
): readonly Line[] {
  const { options } = card.form;
  const from = Math.max(0, Math.min((selected ?? 0) - Math.floor(rows / 2), options.length - rows));
  return options.slice(from, from + rows).map((option, at): Line => {
    const chosen = from + at === selected;
    const style: Style = chosen && focused ? "selected" : focused ? "plain" : "dim";
    const decides = option.kind === "approve" || option.kind === "value" || option.kind === "write";
    const more = decides ? decisionNote(card, unseen, columns < ROOMY) : "";
    const note: Line = more === "" ? [] : [{ text: more, style: "notice" }];
    const label =
      option.kind === "value"
        ? valueLabel(option.text, style)
        : [{ text: labelOf(option.kind, card, columns < ROOMY), style }];
    return cut([{ text: chosen ? "❯ " : "  ", style }, ...label, ...note], columns);
  });
}

/** Why an approval or an answer would not be sent yet. */
function decisionNote({ fault }: Card, unseen: number, short: boolean): string {
  if (fault !== undefined) return ` · not here: ${fault}`;
  if (short && unseen > 0) return ` · ${unseen} not shown`;
  return unseen > 0 ? ` · ${unseen} ${unseen === 1 ? "line" : "lines"} not shown` : "";
}

function labelOf(kind: Exclude<Option["kind"], "value">, { request }: Card, short: boolean): string {
  const subject = request.kind === "grantStageTool" ? "this call " : "this step ";
  return {
    approve: `Approve ${short ? "" : subject}once`,
    deny: isQuestion(request) ? "Decline to answer" : "Deny",
    reason: "Deny with a reason",
    defer: "Decide later",
    all: "Show all, or less",
    write: "Write an answer",
  }[kind];
}

/** Invisible characters are escaped: different answers must not look the same. */
function valueLabel(text: string, style: Style): Line {
  return [{ text: "answer: ", style }, ...revealed(text, style, MAX_LABEL)];
}

function footLine(card: Card, open: OpenCard, columns: number): Line {
  if (open.hint !== "") return cut([{ text: cleanInline(open.hint.slice(0, 400)), style: "bad" }], columns);
  const esc = isQuestion(card.request) ? "declines" : "denies";
  const keys = open.writing
    ? "Enter sends · Alt+Enter new line · Esc goes back"
    : open.focused
      ? `↑↓ choose · Enter · Esc ${esc} this · PgDn scrolls · Ctrl+N next · Tab leaves`
      : "Tab focuses this card; until then keys go to the input";
  return cut([{ text: keys, style: "dim" }], columns);
}

function writtenLines(
  { editor }: OpenCard,
  columns: number,
): { readonly lines: readonly Line[]; readonly cursor: { readonly row: number; readonly column: number } } {
  const layout = layOut(editor, editor.cursor, Math.max(1, columns - 2));
  const { row, column } = layout.cursor;
  const from = Math.max(0, Math.min(row - 1, layout.rows.length - WRITTEN_ROWS));
  const rows = layout.rows.slice(from, from + WRITTEN_ROWS);
  const lines = rows.map((one): Line => [{ text: "> ", style: "accent" }, ...lineOf(one.cells)]);
  return { lines, cursor: { row: row - from, column: column + 2 } };
}
