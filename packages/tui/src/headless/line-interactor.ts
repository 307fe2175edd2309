import {
  argsSummary,
  field,
  type Interactor,
  isJsonObject,
  type Json,
  type JsonObject,
  type PersonRequest,
  visible,
} from "@sluice/core";
import { textAt } from "../fields.ts";
import { indented } from "../words.ts";
import { type TypedAnswer, typedValue } from "../work/answering.ts";
import type { LinePrompt } from "./line-prompt.ts";

/**
 * A person at a plain terminal. Leave is given only by the word "approve" in full; an empty line denies, and the end of the
 * input is no opinion.
 */
export function lineInteractor(prompt: LinePrompt, output: NodeJS.WritableStream): Interactor {
  return {
    name: "terminal",
    async answer(request, signal) {
      await prompt.pause();
      const isQuestion = request.kind === "askUser" || request.kind === "humanState";
      output.write(isQuestion ? questionCard(request) : grantCard(request));
      const how = isQuestion
        ? "answer (an empty line declines): "
        : "approve, deny [reason] or defer (an empty line denies): ";
      for (;;) {
        const line = await prompt.ask(how, signal);
        if (line === undefined) {
          if (signal.aborted) output.write("no answer is needed any more\n");
          return undefined;
        }
        const read = isQuestion ? readValue(request, line) : readLeave(line);
        if (read.ok) return read.answer;
        output.write(`${visible(read.fault)}\n`);
      }
    },
  };
}

function readLeave(line: string): TypedAnswer {
  const [, word = "", rest = ""] = /^\s*(\S*)\s*(.*?)\s*$/s.exec(line) ?? [];
  switch (word) {
    case "":
      return { ok: true, answer: { kind: "deny" } };
    case "approve":
      if (rest === "") return { ok: true, answer: { kind: "approve" } };
      break;
    case "deny":
      return { ok: true, answer: rest === "" ? { kind: "deny" } : { kind: "deny", reason: rest } };
    case "defer":
      if (rest === "") return { ok: true, answer: { kind: "defer" } };
      break;
  }
  return { ok: false, fault: "type approve in full to let this one call run; deny, deny with a reason, or defer" };
}

function readValue(request: PersonRequest, line: string): TypedAnswer {
  return line.trim() === ""
    ? { ok: true, answer: { kind: "deny", reason: "the person did not answer" } }
    : typedValue(request, line.trim());
}

function grantCard({ runId, kind, body }: PersonRequest): string {
  const tool = textAt(body, "tool");
  const input = field(body, "input") ?? null;
  const what =
    kind === "approveTransition" ? "A step of the run" : `A call outside what ${textAt(body, "executionId")} may do`;
  const lines = [
    "",
    `${inLine(what)} needs leave (run ${inLine(runId)}):`,
    `  ${argsSummary(tool, input)}`,
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
