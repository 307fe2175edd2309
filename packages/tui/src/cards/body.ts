import { field, isJsonObject, type Json, type JsonObject, type OpenRequest } from "@sluice/core";
import { isQuestion } from "@sluice/core/runtime";
import { headAndTail, type Line, labelled, quoted, sentence, verbatim } from "@sluice/view/text";
import { count, moment, textAt } from "@sluice/view/words";
import { MOST_SHOWN, sizeOf } from "../user/approval-check.ts";
import type { Card } from "./card-stack.ts";
import { changeLines, type FileNow } from "./change.ts";
import { choicesOf, valueText } from "./form.ts";

/** What a card shows besides its request. */
export interface CardFacts {
  /** Tools that the stage may use without approval; undefined if unknown. */
  readonly tools?: readonly string[];
  /** Turn cap of an attempt of the stage. */
  readonly turnCap?: number;
  /** The current content of the file that would be written; undefined if it was not read. */
  readonly file?: FileNow;
}

/** How much is shown of a value that is too long to be shown whole: UTF-16 units of a text, members of an object. */
const MAX_TEXT = 4_000;
const MAX_MEMBERS = 50;

/** The body of a card: everything that would run, and why it needs approval. Expensive for long requests. */
export function bodyLines(card: Card, facts: CardFacts, width: number, all: boolean): readonly Line[] {
  const { kind } = card.request;
  const about =
    kind === "grantStageTool"
      ? grantLines(card, facts, width)
      : kind === "approveTransition"
        ? transitionLines(card.request, width)
        : questionLines(card.request, width);
  const can = isQuestion(card.request) ? "answered" : "approved";
  const fault = card.fault === undefined ? [] : sentence(`It cannot be ${can} here: ${card.fault}.`, width, "bad");
  return [
    ...about,
    ...fault,
    ...digestLines(card.request, width, all),
    ...(all ? everything(card.request, width) : []),
  ];
}

function grantLines({ request }: Card, facts: CardFacts, width: number): readonly Line[] {
  const { body } = request;
  const input = field(body, "input") ?? null;
  const proposed = field(body, "proposed");
  const shown = sizeOf(input, MOST_SHOWN) > MOST_SHOWN ? shortened(input) : input;
  return [
    ...callLines(textAt(body, "tool"), shown, facts, width),
    ...(proposed === undefined ? [] : filledIn(proposed, width)),
    ...touched(body, width),
    ...reason(textAt(body, "why"), width),
    ...envelope(facts, width),
  ];
}

/** A change as a diff, a command verbatim, other arguments as JSON. */
function callLines(tool: string, input: Json, { file }: CardFacts, width: number): readonly Line[] {
  const { command, ...rest } = isJsonObject(input) ? input : {};
  if (tool === "Bash" && typeof command === "string")
    return [...verbatim(command, width, "code"), ...restLines(rest, "and", width)];
  const change = changeLines(tool, input, file, width);
  if (change !== undefined) return change;
  return jsonLines(input, width);
}

function restLines(rest: JsonObject, word: string, width: number): readonly Line[] {
  return Object.keys(rest).length === 0 ? [] : [...sentence(`${word}:`, width, "dim"), ...jsonLines(rest, width)];
}

function jsonLines(value: Json, width: number): readonly Line[] {
  return verbatim(JSON.stringify(value, null, 2), width);
}

function filledIn(proposed: Json, width: number): readonly Line[] {
  const text = "The tool's schema changed these arguments or filled in defaults. The digest covers the model's own:";
  return [...sentence(text, width, "notice"), ...jsonLines(shortIfLong(proposed), width)];
}

/** The paths after links are resolved. */
function touched(body: JsonObject, width: number): readonly Line[] {
  const touches = field(body, "touches");
  if (!Array.isArray(touches)) return [];
  return touches.flatMap((touch: Json) => {
    const verb = textAt(touch, "access") === "write" ? "It writes:" : "It reads:";
    return labelled(verb, verbatim(textAt(touch, "path"), width), width);
  });
}

function envelope({ tools, turnCap }: CardFacts, width: number): readonly Line[] {
  if (tools === undefined) return [];
  const text =
    tools.length === 0 ? "The stage may use no tool without approval" : `The stage may use: ${tools.join(", ")}`;
  return sentence(turnCap === undefined ? text : `${text}; ${count(turnCap, "turn")} per attempt`, width, "dim");
}

/** A move of the run: from where to where, by which event, what the author asks, and what an answer means. */
function transitionLines({ body }: OpenRequest, width: number): readonly Line[] {
  const { from, to, why, message, event, data, ...rest } = body;
  // The title, and "show all", have these.
  const { pipeline: _pipeline, executionId: _execution, attempt: _attempt, turn: _turn, ...others } = rest;
  const { rationale, ...added } = isJsonObject(data) ? data : {};
  const step = [from, to].map((end) => (typeof end === "string" ? end : JSON.stringify(end ?? null))).join(" -> ");
  const reasons = [why, message].flatMap((reason) => (reason === undefined ? [] : [reason]));
  return [
    ...sentence("The next step would be:", width, "dim"),
    ...verbatim(headAndTail(step, MAX_TEXT), width, "strong"),
    ...(event === undefined
      ? []
      : labelled("by the event:", verbatim(headAndTail(wordOf(event), MAX_TEXT), width), width)),
    ...reasons.flatMap((one) => reason(wordOf(one), width)),
    ...(rationale === undefined
      ? []
      : labelled("The stage says:", quoted(headAndTail(wordOf(rationale), MOST_SHOWN), width), width)),
    ...restLines(isLong(added) ? {} : added, "It adds to the context", width),
    ...restLines(isLong(others) ? {} : others, "with", width),
    ...(isJsonObject(data) || data === undefined ? [] : restLines({ data }, "with", width)),
    ...sentence(answerMeaning(event), width, "dim"),
  ];
}

function answerMeaning(event: Json | undefined): string {
  const denied = event === undefined ? "Denying fails the run" : "Denying keeps the stage where it is";
  return `Approving allows this step once. ${denied}.`;
}

function wordOf(value: Json): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function questionLines({ body }: OpenRequest, width: number): readonly Line[] {
  const question = field(body, "question");
  const text = typeof question === "string" ? question : JSON.stringify(question ?? null);
  const answer = field(body, "answer");
  const until = field(body, "until");
  const deadline =
    typeof until === "number" ? sentence(`It can be answered until ${moment(until)}.`, width, "dim") : [];
  return [
    // Verbatim, since an answer may decide what runs.
    ...verbatim(headAndTail(text, MOST_SHOWN), width),
    ...longChoices(answer, width),
    ...fieldsOf(answer, width),
    ...deadline,
  ];
}

/** The choices in full, if one does not fit its row among the options. */
function longChoices(schema: Json | undefined, width: number): readonly Line[] {
  const texts = (choicesOf(schema) ?? []).map(valueText);
  // Escaped characters take more columns than they have.
  if (texts.every((text) => text.length * 2 + 12 < width)) return [];
  const whole = texts.flatMap((text) => [...verbatim(headAndTail(text, MAX_TEXT), width)]);
  return [...sentence("The answers in full:", width, "dim"), ...whole];
}

/** The members of an answer in JSON. */
function fieldsOf(schema: Json | undefined, width: number): readonly Line[] {
  const properties = field(schema, "properties");
  if (!isJsonObject(properties)) return [];
  const required = field(schema, "required");
  const names = Object.entries(properties).slice(0, MAX_MEMBERS);
  const members = names.map(([name, member]) => {
    const type = textAt(member, "type");
    const must = Array.isArray(required) && required.includes(name) ? ", required" : "";
    return `${name}${type === "" ? "" : `: ${type}`}${must}`;
  });
  return [...sentence("The answer is JSON with:", width, "dim"), ...verbatim(members.join("\n"), width)];
}

const SHORT_DIGEST = 12;

function digestLines(request: OpenRequest, width: number, all: boolean): readonly Line[] {
  if (isQuestion(request)) return [];
  const { kind, digest } = request;
  const what = kind === "grantStageTool" ? "Digest of the arguments" : "Digest";
  return sentence(`${what}: ${all ? digest : digest.slice(0, SHORT_DIGEST)}`, width, "dim");
}

function everything({ runId, requestId, openedAt, body }: OpenRequest, width: number): readonly Line[] {
  return [
    ...sentence(`Run ${runId}, request ${requestId}, open since ${moment(openedAt)}`, width, "dim"),
    ...sentence("The whole request:", width, "dim"),
    ...jsonLines(shortIfLong(body), width),
  ];
}

function reason(text: string, width: number): readonly Line[] {
  return text === "" ? [] : labelled("Why it needs approval:", quoted(headAndTail(text, MAX_TEXT), width), width);
}

function isLong(value: Json): boolean {
  return sizeOf(value, MOST_SHOWN) > MOST_SHOWN;
}

function shortIfLong(value: Json): Json {
  return isLong(value) ? shortened(value) : value;
}

/** The part of a long value that is shown; it cannot be approved. */
function shortened(value: Json, depth = 0): Json {
  if (typeof value === "string") return headAndTail(value, MAX_TEXT);
  if (typeof value !== "object" || value === null) return value;
  if (depth > 6) return "…";
  if (!isJsonObject(value)) return value.slice(0, MAX_MEMBERS).map((member) => shortened(member, depth + 1));
  const members: [string, Json][] = [];
  for (const key in value) {
    if (members.length === MAX_MEMBERS) break;
    const member = value[key];
    if (member !== undefined) members.push([headAndTail(key, 200), shortened(member, depth + 1)]);
  }
  return Object.fromEntries(members);
}
