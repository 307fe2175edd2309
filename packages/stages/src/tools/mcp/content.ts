import { isJson, isJsonObject, type Json, type JsonObject, type ToolResult } from "@sluice/core";
import { headTail, KEPT_HALF, SHOWN_HALF } from "../files/output.ts";
import { failure } from "../files/results.ts";

/** Characters of an answer that are kept as it came. */
const LONGEST_KEPT = 2 * KEPT_HALF;
const LONGEST_WORD = 300;
/** Values of a structured answer that are looked for in its texts. */
const MOST_LEAVES = 200;

/** One piece of an answer as a model reads it. */
interface Shown {
  readonly text: string;
  /** Something of it cannot be said in text. */
  readonly leftOut: boolean;
}

/**
 * An answer of a server as a result: text as it is, everything that is not text as a line that says what it was. What was
 * left out or cut is kept whole in the journal, up to about 1 MB. An answer that says it is an error is one.
 */
export function readAnswer(tool: string, answer: unknown): ToolResult {
  if (!isJson(answer) || !isJsonObject(answer))
    return failure(
      "bad_answer",
      "The server's answer is not one of the protocol. Whether the call took effect is not known.",
    );
  const pieces = piecesOf(answer);
  const text = pieces.map((piece) => piece.text).join("\n");
  const shown = headTail(SHOWN_HALF);
  shown.push(text);
  const leftOut = pieces.some((piece) => piece.leftOut);
  const facts = { characters: text.length, cut: shown.cut, parts: pieces.length };
  const rest = { ...(shown.cut || leftOut ? { full: whole(answer, text) } : {}), facts };
  if (answer.isError === true)
    return { ...failure("server_error", shown.text() || `${tool} failed, and the server does not say why.`), ...rest };
  return { ok: true, output: shown.text() || "(no output)", ...rest };
}

function whole(answer: JsonObject, text: string): Json {
  if (JSON.stringify(answer).length <= LONGEST_KEPT) return answer;
  const kept = headTail(KEPT_HALF);
  kept.push(text);
  return kept.text();
}

function piecesOf(answer: JsonObject): readonly Shown[] {
  const { content, structuredContent, toolResult } = answer;
  const pieces = Array.isArray(content) ? content.map(shownPart) : [];
  if (toolResult !== undefined)
    pieces.push(said(typeof toolResult === "string" ? toolResult : JSON.stringify(toolResult)));
  // Servers repeat it as text for clients that only read text, in one form or another.
  if (structuredContent !== undefined && !isSaid(structuredContent, pieces))
    pieces.push(said(JSON.stringify(structuredContent)));
  return pieces;
}

/** Whether every value in it is somewhere in the texts. Of many values that is not looked for. */
function isSaid(structured: Json, pieces: readonly Shown[]): boolean {
  const text = pieces.map((piece) => piece.text).join("\n");
  const values = leaves(structured, []);
  return values.length <= MOST_LEAVES && values.every((value) => text.includes(value) || text.includes(quoted(value)));
}

/** Adds up to one more value than is looked for. */
function leaves(value: Json, found: string[]): readonly string[] {
  if (found.length > MOST_LEAVES || value === null) return found;
  if (typeof value === "object") for (const member of Object.values(value)) leaves(member, found);
  else found.push(String(value));
  return found;
}

/** As it stands inside of JSON. */
function quoted(value: string): string {
  return JSON.stringify(value).slice(1, -1);
}

function shownPart(part: Json): Shown {
  if (!isJsonObject(part)) return note("a part that is none of the protocol");
  switch (part.type) {
    case "text":
      return typeof part.text === "string" ? said(part.text) : note("a text without text");
    case "image":
    case "audio":
      return note(`${part.type} ${word(part.mimeType)}, ${bytesOf(part.data)}`);
    case "resource":
      return shownResource(isJsonObject(part.resource) ? part.resource : {});
    case "resource_link": {
      const { uri, name, mimeType, description } = part;
      const about = [word(name), word(mimeType), word(description)].filter((each) => each !== "");
      return said(`[link to the resource ${word(uri)}: ${about.join(", ")}]`);
    }
    default:
      return note(`a part of type ${word(part.type) || "unknown"}`);
  }
}

function shownResource({ uri, mimeType, text, blob }: JsonObject): Shown {
  const name = [word(uri), word(mimeType)].filter((each) => each !== "").join(", ");
  if (typeof text === "string") return said(`[resource ${name}]\n${text}`);
  return note(`resource ${name}, ${bytesOf(blob)}`);
}

function said(text: string): Shown {
  return { text, leftOut: false };
}

function note(what: string): Shown {
  return { text: `[${what}: not shown]`, leftOut: true };
}

/** The length of what base64 stands for. */
function bytesOf(data: Json | undefined): string {
  if (typeof data !== "string") return "no data";
  const padding = data.endsWith("==") ? 2 : data.endsWith("=") ? 1 : 0;
  return `${Math.max(0, Math.floor((data.length * 3) / 4) - padding)} bytes`;
}

function word(value: Json | undefined): string {
  return typeof value === "string" ? value.replaceAll(/\s+/g, " ").slice(0, LONGEST_WORD) : "";
}
