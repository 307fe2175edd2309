import { field, isJsonObject, type Json } from "@sluice/core";
import { CALL_MARKS, type CallView, mainArgument, reasonOf, stateLabel } from "@sluice/view";
import {
  clean,
  cut,
  editDiff,
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

export interface CallCardOptions {
  /** Columns; no row is wider. */
  readonly width: number;
  /** One row, and a second one that says why where a call came to nothing. */
  readonly folded: boolean;
  /** Rows. Default 200. */
  readonly maxLines?: number;
}

const MOST_LINES = 200;
/** UTF-16 units of what the head tells of an argument, of a tool's name, and of a command shown whole. */
const LONGEST_WORD = 300;
const LONGEST_NAME = 80;
const LONGEST_COMMAND = 20_000;
/** Columns an argument needs for it to be worth telling beside the outcome. */
const LEAST_ARGUMENT = 12;
const INDENT: Span = { text: "  │ ", style: "dim" };

/** A tool call as rows: what it is and how it went; unfolded also its arguments, its result and why it was refused. */
export function callCard(call: CallView, options: CallCardOptions): readonly Line[] {
  const width = Math.max(1, options.width);
  const most = Math.max(1, options.maxLines ?? MOST_LINES);
  const inner = Math.max(2, width - widthOf([INDENT]));
  const reason = reasonOf(call);
  const body = options.folded ? inShort(call, reason, inner) : unfolded(call, reason, inner, most - 1);
  const rows: readonly Line[] = [headLine(call, width), ...body.map((line) => [INDENT, ...line])];
  return rows.slice(0, most).map((line) => cut(line, width));
}

function headLine(call: CallView, width: number): Line {
  const { sign, style } = CALL_MARKS[call.state];
  const name = spanOf(headOf(call.tool, LONGEST_NAME), "strong");
  const left: Line = [{ text: `${sign} `, style }, name];
  const outcome = outcomeOf(call);
  const argument = mainArgument(call);
  const room = width - widthOf(left) - widthOf(outcome) - 1;
  const told = argument.length === 0 || room < LEAST_ARGUMENT ? [] : [{ text: " " }, ...cut(argument, room)];
  return cut([...left, ...told, ...outcome], width);
}

function outcomeOf({ state, ms, facts, tool, approvedBy }: CallView): Line {
  const { word, style } = CALL_MARKS[state];
  const said: Span[] = [{ text: "  " }, { text: word, style }];
  const number = (name: string): number | undefined => {
    const value = facts?.[name];
    return typeof value === "number" && Number.isFinite(value) ? value : undefined;
  };
  const [added, removed, exit] = [number("added"), number("removed"), number("exitCode")];
  if ((tool === "Edit" || tool === "Write") && added !== undefined && removed !== undefined) {
    said.push({ text: ` +${added}`, style: "added" }, { text: ` −${removed}`, style: "removed" });
  }
  if (exit !== undefined && exit !== 0) said.push({ text: ` exit ${exit}`, style: "bad" });
  if (ms !== undefined) said.push({ text: ` · ${duration(ms)}`, style: "dim" });
  if (approvedBy !== undefined) said.push({ text: ` · approved by ${stateLabel(approvedBy)}`, style: "dim" });
  return said;
}

/** Why it came to nothing, in one row; of a tool that only printed something the last of it. */
function inShort({ state, output }: CallView, reason: string, width: number): readonly Line[] {
  const printed = state === "error" && typeof output === "string" ? tailOf(output, LONGEST_WORD * 4) : "";
  const said = reason === "" ? (printed.trimEnd().split("\n").at(-1) ?? "") : headOf(reason, LONGEST_WORD);
  return said === "" ? [] : [cut([spanOf(said, "dim")], width)];
}

function unfolded(call: CallView, reason: string, width: number, room: number): readonly Line[] {
  const said: readonly Line[] = reason === "" ? [] : reasonRows(call, reason, width);
  const given = argumentRows(call, width, Math.max(4, Math.floor(room * 0.6)));
  const left = Math.max(1, room - given.length - said.length - 1);
  const result = resultRows(call, reason, width, left);
  const between: readonly Line[] = given.length > 0 && said.length + result.length > 0 ? [[]] : [];
  return [...given, ...between, ...said, ...result];
}

function argumentRows({ tool, input }: CallView, width: number, room: number): readonly Line[] {
  if (input === undefined) return [[{ text: "its arguments could not be read", style: "notice" }]];
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

/** As it is run, everything unseen made visible. */
function commandRows(command: string, width: number, room: number): readonly Line[] {
  const shown = headOf(command, LONGEST_COMMAND);
  const rows = shown.split("\n").flatMap((line, at) => {
    const sign: Span = { text: at === 0 ? "$ " : "  ", style: "accent" };
    return wrap(revealed(line, "code"), Math.max(2, width - 2)).map((row, place) => [
      place === 0 ? sign : { text: "  " },
      ...row,
    ]);
  });
  const left = command.length - shown.length;
  if (rows.length <= room && left === 0) return rows;
  const kept = rows.slice(0, Math.max(0, room - 1));
  const more = `… ${rows.length - kept.length} rows${left === 0 ? "" : ` and ${left} characters`} more`;
  return [...kept, [{ text: more, style: "dim" }]];
}

function reasonRows({ state }: CallView, reason: string, width: number): readonly Line[] {
  const { sign, style } = CALL_MARKS[state];
  const rows = clean(headOf(reason, LONGEST_WORD * 4))
    .split("\n")
    .flatMap((line) => wrap([{ text: line, style }], Math.max(2, width - 2), 6));
  return rows.map((row, at) => [{ text: at === 0 ? `${sign} ` : "  ", style }, ...row]);
}

function resultRows({ output, state }: CallView, reason: string, width: number, room: number): readonly Line[] {
  if (output === undefined || output === null) return [];
  if (typeof output === "string") return textRows(output, width, room);
  if (!isJsonObject(output) || state === "ok") return jsonRows(output, width, room);
  // What was told as the reason is not told again; what a command printed is text.
  const isTold = (value: Json): boolean => typeof value === "string" && value.length < 1_000 && reason.includes(value);
  const { output: printed, ...rest } = output;
  const others = Object.fromEntries(Object.entries(rest).filter(([, value]) => !isTold(value)));
  const told = Object.keys(others).length === 0 ? [] : jsonRows(others, width, Math.max(2, Math.floor(room / 3)));
  return [...told, ...printedRows(printed, width, Math.max(1, room - told.length))];
}

function printedRows(printed: Json | undefined, width: number, room: number): readonly Line[] {
  if (printed === undefined || printed === null || printed === "") return [];
  return typeof printed === "string" ? textRows(printed, width, room) : jsonRows({ output: printed }, width, room);
}

function duration(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))}ms`;
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)}s`;
  const seconds = Math.round(ms / 1_000);
  return `${Math.floor(seconds / 60)}m${String(seconds % 60).padStart(2, "0")}s`;
}
