import {
  argsSummary,
  field,
  isJsonObject,
  type Json,
  type JsonObject,
  type PersonRequest,
  visible,
} from "@sluice/core";
import { indented, textAt } from "@sluice/view/words";

/** UTF-16 units of a call that is told in one line. */
const LONGEST_SUMMARY = 100;

/** A request as lines of a plain terminal, whole: whoever answers it decides about nothing else. */
export function requestCard(request: PersonRequest): string {
  return request.kind === "askUser" || request.kind === "humanState" ? questionCard(request) : grantCard(request);
}

function grantCard({ runId, kind, body }: PersonRequest): string {
  const tool = textAt(body, "tool");
  const input = field(body, "input") ?? null;
  const what =
    kind === "approveTransition" ? "A step of the run" : `A call outside what ${textAt(body, "executionId")} may do`;
  const summary = argsSummary(tool, input);
  const lines = [
    "",
    `${inLine(what)} needs leave (run ${inLine(runId)}):`,
    // What stands whole below does not stand above it in escapes as well.
    `  ${summary.length > LONGEST_SUMMARY && isJsonObject(input) ? inLine(tool) : summary}`,
    ...everyArgument(input),
    ...touched(body),
    `  why it asks: ${inLine(textAt(body, "why"))}`,
  ];
  return `${lines.map(visible).join("\n")}\n`;
}

/** Where links lead: a path's name does not tell. */
function touched(body: JsonObject): readonly string[] {
  const touches = field(body, "touches");
  if (!Array.isArray(touches)) return [];
  return touches.map((touch: Json) => `  it ${textAt(touch, "access")}s: ${inLine(textAt(touch, "path"))}`);
}

/** Every argument whole: what a summary leaves out is where a command hides what matters. */
function everyArgument(input: Json): readonly string[] {
  if (!isJsonObject(input)) return [quoted("input", JSON.stringify(input))];
  return Object.entries(input).map(([key, value]) =>
    quoted(key, typeof value === "string" ? value : JSON.stringify(value, null, 2)),
  );
}

/** Lines of somebody else's text stand behind a bar, so that none of them looks like ours. */
function quoted(key: string, text: string): string {
  return text.includes("\n") ? `    ${inLine(key)}:\n${indented(text, "      | ")}` : `    ${inLine(key)}: ${text}`;
}

function questionCard({ runId, body }: PersonRequest): string {
  const options = field(field(body, "answer"), "enum");
  const choices = Array.isArray(options)
    ? options.map((option: Json) => `  - ${inLine(typeof option === "string" ? option : JSON.stringify(option))}`)
    : [];
  const question = textAt(body, "question").replaceAll(/^/gm, "  | ");
  return `${["", `Run ${inLine(runId)} asks:`, question, ...choices].map(visible).join("\n")}\n`;
}

function inLine(text: string): string {
  return text.replaceAll("\n", "\\n");
}
