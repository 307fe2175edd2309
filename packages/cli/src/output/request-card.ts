import { field, isJsonObject, type Json, type JsonObject, type PersonRequest } from "@sluice/core";
import { argsSummary } from "@sluice/core/gate";
import { itemKeyOf, visible } from "@sluice/core/runtime";
import { isQuestion } from "@sluice/tui/user";
import { indented, textAt } from "@sluice/view/words";

/** UTF-16 units of a call that is shown in one line. */
const MAX_SUMMARY = 100;

/** A request as lines for a plain terminal. It is complete, since the answer applies to exactly this request. */
export function requestCard(request: PersonRequest): string {
  if (isQuestion(request)) return questionCard(request);
  return request.kind === "approveTransition" ? transitionCard(request) : grantCard(request);
}

function grantCard({ runId, body }: PersonRequest): string {
  const tool = textAt(body, "tool");
  const input = field(body, "input") ?? null;
  const what = `A call outside what ${textAt(body, "executionId")} may do`;
  const summary = argsSummary(tool, input);
  const lines = [
    "",
    `${inLine(what)} needs approval (run ${inLine(runId)}):`,
    ...itemLines(runId, body),
    // A long call is only shown in full, below.
    `  ${summary.length > MAX_SUMMARY && isJsonObject(input) ? inLine(tool) : summary}`,
    ...everyArgument(input),
    ...touched(body),
    `  why: ${inLine(textAt(body, "why"))}`,
  ];
  return `${lines.map(visible).join("\n")}\n`;
}

/** A move from state to state, with everything that it is about. */
function transitionCard({ runId, body }: PersonRequest): string {
  const { from: _from, to: _to, ...facts } = body;
  const lines = [
    "",
    `A step of the run needs approval (run ${inLine(runId)}):`,
    ...itemLines(runId, body),
    `  ${inLine(textAt(body, "from"))} -> ${inLine(textAt(body, "to"))}`,
    ...everyArgument(facts),
  ];
  return `${lines.map(visible).join("\n")}\n`;
}

/** The item of a list that a request is about. */
function itemLines(runId: string, body: JsonObject): readonly string[] {
  const [state = ""] = textAt(body, "executionId").split("#", 1);
  const item = itemKeyOf(runId, state);
  return state === "" || item === undefined ? [] : [`  item: ${inLine(item)}`];
}

/** The files that the call accesses, with links resolved. */
function touched(body: JsonObject): readonly string[] {
  const touches = field(body, "touches");
  if (!Array.isArray(touches)) return [];
  return touches.map((touch: Json) => `  ${textAt(touch, "access")}s: ${inLine(textAt(touch, "path"))}`);
}

/** Every argument in full: a command could hide the relevant part in what a summary omits. */
function everyArgument(input: Json): readonly string[] {
  if (!isJsonObject(input)) return [quoted("input", JSON.stringify(input))];
  return Object.entries(input).map(([key, value]) =>
    quoted(key, typeof value === "string" ? value : JSON.stringify(value, null, 2)),
  );
}

/** Lines of untrusted text are prefixed with a bar, so that they cannot imitate Sluice's own. */
function quoted(key: string, text: string): string {
  return text.includes("\n") ? `    ${inLine(key)}:\n${indented(text, "      | ")}` : `    ${inLine(key)}: ${text}`;
}

function questionCard({ runId, body }: PersonRequest): string {
  const options = field(field(body, "answer"), "enum");
  const choices = Array.isArray(options)
    ? options.map((option: Json) => `  - ${inLine(typeof option === "string" ? option : JSON.stringify(option))}`)
    : [];
  const question = textAt(body, "question").replaceAll(/^/gm, "  | ");
  return `${["", `Run ${inLine(runId)} asks:`, ...itemLines(runId, body), question, ...choices].map(visible).join("\n")}\n`;
}

function inLine(text: string): string {
  return text.replaceAll("\n", "\\n");
}
