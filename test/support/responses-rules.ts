import { isJsonObject, type Json, type JsonObject } from "@sluice/core";
import { OPENAI_TROUBLES } from "./chat-server.ts";
import { blank, list, type RecordedRequest, type Refusal, unknownMember, word } from "./sse-server.ts";

const NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const BODY = [
  "model",
  "input",
  "include",
  "stream",
  "store",
  "tools",
  "tool_choice",
  "temperature",
  "top_p",
  "max_output_tokens",
  "reasoning",
  "service_tier",
  "prompt_cache_key",
  "text",
];
const ITEMS: Readonly<Record<string, readonly string[]>> = {
  message: ["role", "content"],
  reasoning: ["id", "summary", "encrypted_content"],
  function_call: ["call_id", "name", "arguments"],
  function_call_output: ["call_id", "output"],
};

/** What OpenAI's Responses API refuses of what a tool loop could get wrong. `sealed` holds the encrypted reasoning it gave. */
export function checkResponsesRequest(
  { headers, body }: RecordedRequest,
  sealed: ReadonlyMap<string, string>,
): Refusal | undefined {
  if (!/^Bearer \S/.test(headers.authorization ?? "")) return OPENAI_TROUBLES.key;
  const message = bodyFault(body) ?? toolsFault(body) ?? inputFault(body, sealed);
  return message === undefined ? undefined : { status: 400, type: "invalid_request_error", message };
}

function bodyFault(body: JsonObject): string | undefined {
  const extra = unknownMember(body, BODY);
  if (extra !== undefined) return `Unknown parameter: '${extra}'.`;
  if (blank(body.model)) return "Missing required parameter: 'model'.";
  if (body.store !== false) return "this server remembers nothing: store has to be false";
  const max = body.max_output_tokens;
  if (max !== undefined && (typeof max !== "number" || max < 16))
    return "Invalid 'max_output_tokens': integer below minimum value.";
  if (body.temperature !== undefined && word(body.model).startsWith("gpt-5"))
    return "Unsupported parameter: 'temperature' is not supported with this model.";
  return body.stream === true ? undefined : "this server only streams";
}

function toolsFault(body: JsonObject): string | undefined {
  if (body.tools !== undefined && list(body.tools).length === 0) return "Invalid 'tools': empty array.";
  const names = new Set<string>();
  for (const [index, tool] of list(body.tools).entries()) {
    const at = `tools[${index}]`;
    if (!isJsonObject(tool) || tool.type !== "function") return `Invalid value: '${at}.type'`;
    const extra = unknownMember(tool, ["type", "name", "description", "parameters", "strict"]);
    if (extra !== undefined) return `Unknown parameter: '${at}.${extra}'.`;
    const name = word(tool.name);
    if (!NAME.test(name)) return `Invalid '${at}.name': string does not match pattern.`;
    if (names.has(name)) return `Invalid '${at}.name': tool names must be unique.`;
    names.add(name);
    if (!isJsonObject(tool.parameters) || tool.parameters.type !== "object")
      return `Invalid schema for function '${name}': schema must be a JSON Schema of 'type: "object"'`;
  }
  const choice = body.tool_choice;
  if (choice === undefined || choice === "auto" || choice === "none") return undefined;
  if (names.size === 0) return "Tool choice is only allowed when 'tools' are specified.";
  if (choice === "required") return undefined;
  return isJsonObject(choice) && choice.type === "function" && names.has(word(choice.name))
    ? undefined
    : "Tool choice not found in 'tools' parameter.";
}

function inputFault(body: JsonObject, sealed: ReadonlyMap<string, string>): string | undefined {
  const items = list(body.input);
  if (items.length === 0) return "Missing required parameter: 'input'.";
  const calls = new Set<string>();
  const answered = new Set<string>();
  for (const [index, item] of items.entries()) {
    const at = `input[${index}]`;
    if (!isJsonObject(item)) return `Invalid type for '${at}'.`;
    const type = word(item.type ?? "message");
    const known = ITEMS[type];
    if (known === undefined) return `Invalid value: '${type}' at '${at}.type'.`;
    const extra = unknownMember(item, ["type", ...known]);
    if (extra !== undefined) return `Unknown parameter: '${at}.${extra}'.`;
    const fault = itemFault(type, item, at, { calls, answered, sealed, next: items[index + 1] });
    if (fault !== undefined) return fault;
  }
  const missing = [...calls].filter((id) => !answered.has(id));
  return missing.length > 0 ? `No tool output found for function call ${missing.join(", ")}.` : undefined;
}

interface Walk {
  readonly calls: Set<string>;
  readonly answered: Set<string>;
  readonly sealed: ReadonlyMap<string, string>;
  readonly next: Json | undefined;
}

/** A part of a result that is not only text. */
function isOutputPart(part: Json): boolean {
  return isJsonObject(part) && ["input_text", "input_image", "input_file"].includes(word(part.type));
}

function itemFault(type: string, item: JsonObject, at: string, walk: Walk): string | undefined {
  switch (type) {
    case "message":
      return messageFault(item, at);
    case "reasoning":
      return reasoningFault(item, at, walk);
    case "function_call": {
      const id = word(item.call_id);
      if (id === "" || id.length > 64) return `Invalid '${at}.call_id': string of 1 to 64 characters.`;
      if (walk.calls.has(id)) return `Duplicate function call id ${id} at '${at}'.`;
      if (!NAME.test(word(item.name))) return `Invalid '${at}.name': string does not match pattern.`;
      if (typeof item.arguments !== "string") return `Missing required parameter: '${at}.arguments'.`;
      walk.calls.add(id);
      return undefined;
    }
    default: {
      const id = word(item.call_id);
      if (!walk.calls.has(id)) return `No tool call found for function call output with call_id ${id}.`;
      if (walk.answered.has(id)) return `Duplicate output for call_id ${id} at '${at}'.`;
      if (typeof item.output !== "string" && !list(item.output).every(isOutputPart))
        return `Invalid type for '${at}.output'.`;
      walk.answered.add(id);
      return undefined;
    }
  }
}

function messageFault(item: JsonObject, at: string): string | undefined {
  const role = word(item.role);
  if (!["system", "developer", "user", "assistant"].includes(role)) return `Invalid value: '${role}' at '${at}.role'.`;
  if (typeof item.content === "string") return undefined;
  const blocks = list(item.content);
  const kind = role === "assistant" ? "output_text" : "input_text";
  return blocks.length > 0 && blocks.every((block) => isJsonObject(block) && block.type === kind)
    ? undefined
    : `Invalid value at '${at}.content'.`;
}

function reasoningFault(item: JsonObject, at: string, { sealed, next }: Walk): string | undefined {
  const text = sealed.get(word(item.encrypted_content));
  if (text === undefined) return `The encrypted content for item ${word(item.id)} could not be verified.`;
  const summary = list(item.summary).map((part) => (isJsonObject(part) ? word(part.text) : ""));
  if (summary.join("") !== text) return `The summary of '${at}' is not the one that was given.`;
  const follows =
    isJsonObject(next) && (next.role === "assistant" || ["function_call", "reasoning"].includes(word(next.type)));
  return follows
    ? undefined
    : `Item '${word(item.id)}' of type 'reasoning' was provided without its required following item.`;
}
