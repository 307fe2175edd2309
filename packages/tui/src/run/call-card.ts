import { field, isJsonObject, type Json } from "@sluice/core";
import { CALL_SYMBOLS, type CallView, mainArgument, reasonOf, stateLabel } from "@sluice/view";
import {
  cut,
  editDiff,
  fold,
  headOf,
  jsonRows,
  type Line,
  revealed,
  type Span,
  spanOf,
  tailOf,
  textRows,
  widthOf,
  wrap,
} from "@sluice/view/text";
import { milliseconds } from "@sluice/view/words";
import { textBlock } from "./text-block.ts";

export interface CallCardOptions {
  /** Columns; no row is wider. */
  readonly width: number;
  /** One row, and the reason in a second one if the call failed. */
  readonly folded: boolean;
  /** Default 200. */
  readonly maxLines?: number;
}

const MAX_LINES = 200;
/** UTF-16 units of an argument or a reason, of a tool's name, and of a whole command. */
const MAX_WORD = 300;
const MAX_NAME = 80;
const MAX_COMMAND = 20_000;
/** Columns below which the head has no argument. */
const MIN_ARGUMENT = 12;
const INDENT: Span = { text: "  │ ", style: "dim" };

/** A tool call with its outcome; unfolded also its arguments, its result and why it was refused. */
export function callCard(call: CallView, options: CallCardOptions): readonly Line[] {
  const width = Math.max(1, options.width);
  const most = Math.max(1, options.maxLines ?? MAX_LINES);
  const inner = Math.max(2, width - widthOf([INDENT]));
  const reason = reasonOf(call);
  const body = options.folded ? folded(call, reason, inner) : unfolded(call, reason, inner, most - 1);
  const rows: readonly Line[] = [headLine(call, width), ...body.map((line) => [INDENT, ...line])];
  return rows.slice(0, most).map((line) => cut(line, width));
}

function headLine(call: CallView, width: number): Line {
  const { sign, style } = CALL_SYMBOLS[call.state];
  const name = spanOf(headOf(call.tool, MAX_NAME), "strong");
  const left: Line = [{ text: `${sign} `, style }, name];
  const outcome = outcomeOf(call);
  const argument = mainArgument(call);
  const room = width - widthOf(left) - widthOf(outcome) - 1;
  const shown = argument.length === 0 || room < MIN_ARGUMENT ? [] : [{ text: " " }, ...cut(argument, room)];
  return cut([...left, ...shown, ...outcome], width);
}

function outcomeOf({ state, ms, facts, tool, approvedBy }: CallView): Line {
  const { word, style } = CALL_SYMBOLS[state];
  const outcome: Span[] = [{ text: "  " }, { text: word, style }];
  const number = (name: string): number | undefined => {
    const value = facts?.[name];
    return typeof value === "number" && Number.isFinite(value) ? value : undefined;
  };
  const [added, removed, exit] = [number("added"), number("removed"), number("exitCode")];
  if ((tool === "Edit" || tool === "Write") && added !== undefined && removed !== undefined) {
    outcome.push({ text: ` +${added}`, style: "added" }, { text: ` −${removed}`, style: "removed" });
  }
  if (exit !== undefined && exit !== 0) outcome.push({ text: ` exit ${exit}`, style: "bad" });
  if (ms !== undefined) outcome.push({ text: ` · ${milliseconds(ms)}`, style: "dim" });
  if (approvedBy !== undefined) outcome.push({ text: ` · approved by ${stateLabel(approvedBy)}`, style: "dim" });
  return outcome;
}

/** Why a call failed, in one row; without a reason, the last line of its output. */
function folded({ state, output }: CallView, reason: string, width: number): readonly Line[] {
  const printed = state === "error" && typeof output === "string" ? tailOf(output, MAX_WORD * 4) : "";
  const text = reason === "" ? (printed.trimEnd().split("\n").at(-1) ?? "") : headOf(reason, MAX_WORD);
  return text === "" ? [] : [cut([spanOf(text, "dim")], width)];
}

function unfolded(call: CallView, reason: string, width: number, room: number): readonly Line[] {
  const why: readonly Line[] = reason === "" ? [] : reasonRows(call, reason, width);
  const args = argumentRows(call, width, Math.max(4, Math.floor(room * 0.6)));
  const left = Math.max(1, room - args.length - why.length - 1);
  const result = resultRows(call, reason, width, left);
  const between: readonly Line[] = args.length > 0 && why.length + result.length > 0 ? [[]] : [];
  return [...args, ...between, ...why, ...result];
}

function argumentRows({ tool, input }: CallView, width: number, room: number): readonly Line[] {
  if (input === undefined) return [[{ text: "its arguments could not be parsed", style: "notice" }]];
  const diff = editDiff(tool, input, { width, maxLines: room });
  if (diff !== undefined) return diff;
  const command = field(input, "command");
  if (tool === "Bash" && isJsonObject(input) && typeof command === "string") {
    const { command: _, ...others } = input;
    const rows = commandRows(command, width, room);
    return Object.keys(others).length === 0 ? rows : [...rows, ...jsonRows(others, width, room)];
  }
  if (isJsonObject(input) && Object.keys(input).length === 0) return [];
  return jsonRows(input, width, room);
}

/** The command with invisible characters escaped. */
function commandRows(command: string, width: number, room: number): readonly Line[] {
  const shown = headOf(command, MAX_COMMAND);
  const rows = shown.split("\n").flatMap((line, index) => {
    const sign: Span = { text: index === 0 ? "$ " : "  ", style: "accent" };
    return wrap(revealed(line, "code"), Math.max(2, width - 2)).map((row, part) => [
      part === 0 ? sign : { text: "  " },
      ...row,
    ]);
  });
  const hidden = command.length - shown.length;
  const more: readonly Line[] = hidden === 0 ? [] : [[{ text: `… ${hidden} characters more`, style: "dim" }]];
  return fold([...rows, ...more], Math.max(1, room));
}

function reasonRows({ state }: CallView, reason: string, width: number): readonly Line[] {
  const { sign, style } = CALL_SYMBOLS[state];
  const rows = textBlock(reason, { width, style, most: MAX_WORD * 4 });
  return rows.map((row, at) => [{ text: at === 0 ? `${sign} ` : "  ", style }, ...row]);
}

function resultRows({ output, state }: CallView, reason: string, width: number, room: number): readonly Line[] {
  if (output === undefined || output === null) return [];
  if (typeof output === "string") return textRows(output, width, room);
  if (!isJsonObject(output) || state === "ok") return jsonRows(output, width, room);
  // The reason is not repeated.
  const isReason = (value: Json): boolean =>
    typeof value === "string" && value.length < 1_000 && reason.includes(value);
  const { output: printed, ...rest } = output;
  const others = Object.fromEntries(Object.entries(rest).filter(([, value]) => !isReason(value)));
  const otherRows = Object.keys(others).length === 0 ? [] : jsonRows(others, width, Math.max(2, Math.floor(room / 3)));
  return [...otherRows, ...printedRows(printed, width, Math.max(1, room - otherRows.length))];
}

function printedRows(printed: Json | undefined, width: number, room: number): readonly Line[] {
  if (printed === undefined || printed === null || printed === "") return [];
  return typeof printed === "string" ? textRows(printed, width, room) : jsonRows({ output: printed }, width, room);
}
