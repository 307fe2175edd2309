import { field, isJsonObject, type Json, type JsonObject, type OpenRequest } from "@sluice/core";
import type { Line } from "@sluice/view/text";
import { count, moment, textAt } from "@sluice/view/words";
import { MOST_SHOWN, sizeOf } from "../user/approval-check.ts";
import type { Card } from "./card-stack.ts";
import { changeLines, type FileNow } from "./change.ts";
import { choicesOf, valueText } from "./form.ts";
import { headAndTail, labelled, quoted, sentence, verbatim } from "./verbatim.ts";

/** What a card tells besides its request. Read once, before the card is first shown: what was read must not change under the eye. */
export interface CardFacts {
  /** What the stage may use without asking; undefined where it is not known. */
  readonly tools?: readonly string[];
  /** Turns an attempt of the stage may take. */
  readonly turnCap?: number;
  /** What is now in the file that would be written; absent where it was not read. */
  readonly file?: FileNow;
}

/** Of what is too long to be shown whole, the longest text and the most members that are shown. */
const LONGEST_PART = 4_000;
const MOST_MEMBERS = 50;

/** The text of a card, laid out for a width: everything that would run, and why it is asked. Costs its length: keep it while nothing changes. */
export function bodyLines(card: Card, facts: CardFacts, width: number, all: boolean): readonly Line[] {
  const { kind } = card.request;
  const about =
    kind === "grantStageTool"
      ? grantLines(card, facts, width)
      : kind === "approveTransition"
        ? transitionLines(card.request, width)
        : questionLines(card.request, width);
  const fault = card.fault === undefined ? [] : sentence(`It cannot be approved here: ${card.fault}.`, width, "bad");
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

/** What would be done: a change as a diff, a command as it is, anything else as the arguments that it is called with. */
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
  const said = "The tool's schema changed or filled in what the model gave, of which the digest is:";
  return [...sentence(said, width, "notice"), ...jsonLines(shortIfLong(proposed), width)];
}

/** Where links lead: the name in the arguments does not tell. */
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
  const may =
    tools.length === 0 ? "The stage may use no tool without asking" : `The stage may use: ${tools.join(", ")}`;
  return sentence(turnCap === undefined ? may : `${may}; ${count(turnCap, "turn")} an attempt`, width, "dim");
}

function transitionLines({ body }: OpenRequest, width: number): readonly Line[] {
  const { from, to, why, message, ...rest } = body;
  const way = [from, to].map((end) => (typeof end === "string" ? end : JSON.stringify(end ?? null))).join(" -> ");
  const reasons = [why, message].flatMap((reason) => (reason === undefined ? [] : [reason]));
  return [
    ...sentence("The run would go on:", width, "dim"),
    ...verbatim(headAndTail(way, LONGEST_PART), width, "strong"),
    ...reasons.flatMap((one) => reason(typeof one === "string" ? one : JSON.stringify(one), width)),
    ...restLines(isLong(rest) ? {} : rest, "with", width),
  ];
}

function questionLines({ body }: OpenRequest, width: number): readonly Line[] {
  const question = field(body, "question");
  const asked = typeof question === "string" ? question : JSON.stringify(question ?? null);
  const answer = field(body, "answer");
  return [...quoted(headAndTail(asked, MOST_SHOWN), width), ...longChoices(answer, width), ...fieldsOf(answer, width)];
}

/** Choices that do not fit the one row each has among the options. */
function longChoices(schema: Json | undefined, width: number): readonly Line[] {
  const texts = (choicesOf(schema) ?? []).map(valueText);
  // What is not seen is written out, so it takes more than its length.
  if (texts.every((text) => text.length * 2 + 12 < width)) return [];
  const whole = texts.flatMap((text) => [...verbatim(headAndTail(text, LONGEST_PART), width)]);
  return [...sentence("The answers there are, whole:", width, "dim"), ...whole];
}

/** What an answer in JSON has to hold. */
function fieldsOf(schema: Json | undefined, width: number): readonly Line[] {
  const properties = field(schema, "properties");
  if (!isJsonObject(properties)) return [];
  const required = field(schema, "required");
  const names = Object.entries(properties).slice(0, MOST_MEMBERS);
  const told = names.map(([name, member]) => {
    const type = textAt(member, "type");
    const must = Array.isArray(required) && required.includes(name) ? ", required" : "";
    return `${name}${type === "" ? "" : `: ${type}`}${must}`;
  });
  return [...sentence("The answer is JSON with:", width, "dim"), ...verbatim(told.join("\n"), width)];
}

/** Characters of a digest that are enough to tell one from another at a glance. */
const SHORT_DIGEST = 12;

function digestLines({ kind, digest }: OpenRequest, width: number, all: boolean): readonly Line[] {
  if (kind === "askUser" || kind === "humanState") return [];
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
  return text === "" ? [] : labelled("Why it asks:", quoted(headAndTail(text, LONGEST_PART), width), width);
}

function isLong(value: Json): boolean {
  return sizeOf(value, MOST_SHOWN) > MOST_SHOWN;
}

function shortIfLong(value: Json): Json {
  return isLong(value) ? shortened(value) : value;
}

/** What cannot be approved can still be looked at, in part. */
function shortened(value: Json, depth = 0): Json {
  if (typeof value === "string") return headAndTail(value, LONGEST_PART);
  if (typeof value !== "object" || value === null) return value;
  if (depth > 6) return "…";
  if (!isJsonObject(value)) return value.slice(0, MOST_MEMBERS).map((member) => shortened(member, depth + 1));
  const members: [string, Json][] = [];
  for (const key in value) {
    if (members.length === MOST_MEMBERS) break;
    const member = value[key];
    if (member !== undefined) members.push([headAndTail(key, 200), shortened(member, depth + 1)]);
  }
  return Object.fromEntries(members);
}
