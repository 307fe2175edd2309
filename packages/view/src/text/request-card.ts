import { field, isJsonObject, type Json, type JsonObject, type PersonRequest } from "@sluice/core";
import { itemKeyOf, parseExecutionId, textField } from "@sluice/core/runtime";
import { revealed } from "./clean.ts";
import { hardRows, labelled, verbatim } from "./verbatim.ts";

/** Columns of a card where the width of the terminal is unknown. */
const COLUMNS = 80;
const FEWEST_COLUMNS = 24;
/** Rows from which on a card says how many it has: its beginning may be above the screen. */
const MANY_ROWS = 20;
/** More blanks than this in a row are shown as their number, so that they cannot fill the screen. */
const BLANKS = / {32,}/g;
/** Precedes the rows that continue a row of Sluice's own. */
const CONTINUED = "    ┆ ";
const ARGUMENT = "    ";
/** Where the rows of a text begin that is shown below its name. */
const BELOW = "      ";

/**
 * A request as rows for a plain terminal. It is complete, since the answer applies to exactly this request. Untrusted text is behind
 * bars and never wider than the terminal, so that no part of it can imitate a row of Sluice's own.
 */
export function requestCard(request: PersonRequest, columns = COLUMNS): string {
  const width = Math.max(FEWEST_COLUMNS, columns);
  const rows =
    request.kind === "grantStageTool"
      ? grantRows(request, width)
      : request.kind === "approveTransition"
        ? transitionRows(request, width)
        : questionRows(request, width);
  const many = rows.length < MANY_ROWS ? [] : own(`  (this request has ${rows.length} rows; read all of them)`, width);
  return `\n${[...rows, ...many].join("\n")}\n`;
}

function grantRows({ runId, body }: PersonRequest, width: number): readonly string[] {
  const proposed = field(body, "proposed");
  return [
    ...own(`A call outside what ${textAt(body, "executionId")} may do needs approval (run ${runId}):`, width),
    ...itemRows(runId, body, width),
    ...own(`  ${textAt(body, "tool")}`, width),
    ...everyArgument(field(body, "input") ?? null, width),
    ...(proposed === undefined
      ? []
      : [...own("  as the model sent it, before defaults and changes:", width), ...everyArgument(proposed, width)]),
    ...touched(body, width),
    ...own(`  why: ${textAt(body, "why")}`, width),
  ];
}

/** A move from state to state, with everything that it is about. */
function transitionRows({ runId, body }: PersonRequest, width: number): readonly string[] {
  const { from: _from, to: _to, ...facts } = body;
  return [
    ...own(`A step of the run needs approval (run ${runId}):`, width),
    ...itemRows(runId, body, width),
    ...own(`  ${textAt(body, "from")} -> ${textAt(body, "to")}`, width),
    ...everyArgument(facts, width),
  ];
}

function questionRows({ runId, body }: PersonRequest, width: number): readonly string[] {
  const options = field(field(body, "answer"), "enum");
  const choices = Array.isArray(options) ? toldApart(options) : [];
  return [
    ...own(`Run ${runId} asks:`, width),
    ...itemRows(runId, body, width),
    ...quoted(textAt(body, "question"), "  ", width),
    ...choices.flatMap((choice) => own(`  - ${choice}`, width)),
  ];
}

/** The answers of a question in words, or all of them as JSON if two would look alike. */
export function toldApart(values: readonly Json[], word = (value: Json): string => wordOf(value)): readonly string[] {
  const words = values.map(word);
  const seen = new Set(words.map((text) => text.replaceAll(/\s+/gu, " ").trim().toLowerCase()));
  return seen.size === values.length ? words : values.map((value) => JSON.stringify(value));
}

/** The item of a list that a request is about. */
function itemRows(runId: string, body: JsonObject, width: number): readonly string[] {
  const { state } = parseExecutionId(textAt(body, "executionId"));
  const item = itemKeyOf(runId, state);
  return state === "" || item === undefined ? [] : own(`  item: ${item}`, width);
}

/** The files that the call accesses, with links resolved. */
function touched(body: JsonObject, width: number): readonly string[] {
  const touches = field(body, "touches");
  if (!Array.isArray(touches)) return [];
  return touches.flatMap((touch: Json) => own(`  ${textAt(touch, "access")}s: ${textAt(touch, "path")}`, width));
}

/** Every argument in full: a command could hide the relevant part in what a summary omits. */
function everyArgument(input: Json, width: number): readonly string[] {
  const members = isJsonObject(input) ? Object.entries(input) : [["input", input] as const];
  return members.flatMap(([key, value]) => argument(key, wordOf(value, 2), width));
}

/** In one row if it fits, else below its name. */
function argument(key: string, text: string, width: number): readonly string[] {
  const name = `${textOf(inLine(key))}:`;
  if (text.length < width) {
    const room = width - BELOW.length;
    const [only, ...more] = labelled(name, verbatim(fewBlanks(text), room), room).map(textOf);
    if (only !== undefined && more.length === 0) return [`${ARGUMENT}${only}`];
  }
  return [...own(`${ARGUMENT}${name}`, width), ...quoted(text, BELOW, width)];
}

function quoted(text: string, indent: string, width: number): readonly string[] {
  return verbatim(fewBlanks(text), width - indent.length).map((row) => `${indent}${textOf(row)}`);
}

/** A row of Sluice's own, which may contain foreign names. */
function own(text: string, width: number): readonly string[] {
  const rows = hardRows(inLine(fewBlanks(text)), width - CONTINUED.length);
  return rows.map((row, at) => `${at === 0 ? "" : CONTINUED}${textOf(row)}`);
}

function inLine(text: string): ReturnType<typeof revealed> {
  const line = text.replaceAll("\n", "\\n");
  return revealed(line, "plain", line.length);
}

function fewBlanks(text: string): string {
  return text.replaceAll(BLANKS, (blanks) => `␣×${blanks.length}`);
}

function wordOf(value: Json, indent?: number): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, indent);
}

/** '' for what is not a text. Not that of `words`, since texts import nothing of other folders. */
function textAt(value: Json, key: string): string {
  return textField(value, key) ?? "";
}

function textOf(row: ReturnType<typeof verbatim>[number]): string {
  return row.map(({ text }) => text).join("");
}
