import { isJson, isJsonObject, type Json, type JsonObject, type TextMask, type ToolResult } from "@sluice/core";
import { NO_MASK } from "../../secrets/cut-text.ts";
import { SHOWN_HALF } from "../builtin-facts.ts";
import { failure } from "../files/results.ts";
import { headTail, KEPT_HALF } from "../files/text.ts";
import { cleanText } from "./definition.ts";

/** Characters of an answer that are kept unchanged. */
const LONGEST_KEPT = 2 * KEPT_HALF;
const LONGEST_WORD = 300;
/** Values of a structured answer that are compared with its text. */
const MOST_LEAVES = 200;
/** A part of an answer as a model reads it. */
interface Shown {
  readonly text: string;
  /** Whether a line describes it instead. */
  readonly leftOut: boolean;
}

/**
 * Converts an answer of a server to a result: text as it is, other content as a line that describes it. The journal keeps
 * omitted content up to about 1 MB. An answer with `isError` becomes a failure.
 */
export function readAnswer(tool: string, answer: unknown, secrets: TextMask = NO_MASK): ToolResult {
  if (!isJson(answer) || !isJsonObject(answer))
    return failure(
      "bad_answer",
      "The server sent an answer that violates the protocol. It is unknown whether the call took effect.",
    );
  const pieces = piecesOf(answer, secrets);
  // Masked before it is cut, which could halve a secret.
  const text = secrets.text(textOf(pieces));
  const shown = headTail(SHOWN_HALF);
  shown.push(text);
  const facts = { characters: text.length, cut: shown.cut, parts: pieces.length };
  const rest = { ...(shown.cut || pieces.some(({ leftOut }) => leftOut) ? { full: kept(answer, text) } : {}), facts };
  if (answer.isError === true)
    return { ...failure("server_error", shown.text() || `${tool} failed without a message.`), ...rest };
  return { ok: true, output: shown.text() || "(no output)", ...rest };
}

function kept(answer: JsonObject, text: string): Json {
  if (JSON.stringify(answer).length <= LONGEST_KEPT) return answer;
  const ends = headTail(KEPT_HALF);
  ends.push(text);
  return ends.text();
}

/** What a model reads of each part of an answer. */
function piecesOf(answer: JsonObject, secrets: TextMask): readonly Shown[] {
  const { content, structuredContent, toolResult } = answer;
  const pieces = Array.isArray(content) ? content.map((part) => shownPart(part, secrets)) : [];
  if (toolResult !== undefined)
    pieces.push(whole(typeof toolResult === "string" ? toolResult : JSON.stringify(toolResult)));
  // Servers repeat it as text, in various forms, for clients that read only text.
  if (structuredContent !== undefined && !isRepeated(structuredContent, textOf(pieces)))
    pieces.push(whole(JSON.stringify(structuredContent)));
  return pieces;
}

/** Whether the text contains every value of it. Larger values are not compared. */
function isRepeated(structured: Json, text: string): boolean {
  const values: string[] = [];
  JSON.stringify(structured, (_key, value: Json) => {
    if (typeof value !== "object") values.push(String(value));
    return value;
  });
  return values.length <= MOST_LEAVES && values.every((value) => text.includes(value) || text.includes(quoted(value)));
}

/** As it appears inside JSON. */
function quoted(value: string): string {
  return JSON.stringify(value).slice(1, -1);
}

function shownPart(part: Json, secrets: TextMask): Shown {
  const word = (value: Json | undefined): string => wordOf(value, secrets);
  if (!isJsonObject(part)) return note("content that violates the protocol");
  switch (part.type) {
    case "text":
      return typeof part.text === "string" ? whole(part.text) : note("a text without text");
    case "image":
    case "audio":
      return note(`${part.type} ${word(part.mimeType)}, ${bytesOf(part.data)}`);
    case "resource":
      return shownResource(isJsonObject(part.resource) ? part.resource : {}, word);
    case "resource_link": {
      const { uri, name, mimeType, description } = part;
      const about = [word(name), word(mimeType), word(description)].filter((each) => each !== "");
      return whole(`[link to the resource ${word(uri)}: ${about.join(", ")}]`);
    }
    default:
      return note(`content of type ${word(part.type) || "unknown"}`);
  }
}

function shownResource({ uri, mimeType, text, blob }: JsonObject, word: (value: Json | undefined) => string): Shown {
  const name = [word(uri), word(mimeType)].filter((each) => each !== "").join(", ");
  if (typeof text === "string") return whole(`[resource ${name}]\n${text}`);
  return note(`resource ${name}, ${bytesOf(blob)}`);
}

function whole(text: string): Shown {
  return { text, leftOut: false };
}

function note(what: string): Shown {
  return { text: `[${what}: not shown]`, leftOut: true };
}

function textOf(pieces: readonly Shown[]): string {
  return pieces.map(({ text }) => text).join("\n");
}

/** The length of the data in base64. */
function bytesOf(data: Json | undefined): string {
  return typeof data === "string" ? `${Buffer.byteLength(data, "base64")} bytes` : "no data";
}

function wordOf(value: Json | undefined, secrets: TextMask): string {
  return typeof value === "string" ? cleanText(value.replaceAll(/\s+/g, " "), LONGEST_WORD, secrets) : "";
}
