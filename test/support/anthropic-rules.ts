import { isJsonObject, type Json, type JsonObject } from "@sluice/core";
import { blank, list, type RecordedRequest, type Refusal, unknownMember, word } from "./sse-server.ts";

/** Thinking texts by the signature the server issued with them. */
export type Signatures = ReadonlyMap<string, string>;

const ID = /^[a-zA-Z0-9_-]+$/;
const TOOL_NAME = /^[a-zA-Z0-9_-]{1,128}$/;
const BODY = [
  ...[
    "model",
    "max_tokens",
    "messages",
    "system",
    "stream",
    "temperature",
    "top_p",
    "stop_sequences",
    "tools",
    "tool_choice",
  ],
  ...["thinking", "output_config", "service_tier"],
];
const MOST_BREAKPOINTS = 4;
/** By block type; `cache_control` may stand on any. */
const BLOCKS: Readonly<Record<string, readonly string[]>> = {
  text: ["text", "citations"],
  thinking: ["thinking", "signature"],
  tool_use: ["id", "name", "input", "caller"],
  tool_result: ["tool_use_id", "content", "is_error"],
};

/** What Anthropic's Messages API refuses of what a tool loop could get wrong. Undefined when the request is good. */
export function checkAnthropicRequest(request: RecordedRequest, signatures: Signatures): Refusal | undefined {
  const { headers, body } = request;
  if (typeof headers["x-api-key"] !== "string" || headers["x-api-key"] === "") {
    return { status: 401, type: "authentication_error", message: "x-api-key header is required" };
  }
  const message =
    headers["anthropic-version"] === undefined
      ? "anthropic-version: header is required"
      : (bodyFault(body) ?? toolsFault(body) ?? messagesFault(body, signatures));
  return message === undefined ? undefined : { status: 400, type: "invalid_request_error", message };
}

function bodyFault(body: JsonObject): string | undefined {
  const extra = unknownMember(body, BODY);
  if (extra !== undefined) return `${extra}: Extra inputs are not permitted`;
  if (typeof body.model !== "string" || body.model === "") return "model: Field required";
  const max = body.max_tokens;
  if (typeof max !== "number" || !Number.isInteger(max) || max < 1) return "max_tokens: Field required";
  if (body.stream !== true) return "stream: this server only streams";
  const { thinking, tool_choice: choice } = body;
  const isForced = isJsonObject(choice) && (choice.type === "any" || choice.type === "tool");
  if (isForced && isJsonObject(thinking) && thinking.type !== "disabled")
    return "Thinking may not be enabled when tool_choice forces tool use.";
  const marks = JSON.stringify(body).split('"cache_control":').length - 1;
  if (marks > MOST_BREAKPOINTS) return `A maximum of 4 blocks with cache_control may be provided. Found ${marks}.`;
  if (body.system === undefined || typeof body.system === "string") return undefined;
  return list(body.system).every((block) => isJsonObject(block) && block.type === "text" && !blank(block.text))
    ? undefined
    : "system: text content blocks must be non-empty";
}

function toolsFault(body: JsonObject): string | undefined {
  const names = new Set<unknown>();
  for (const [index, tool] of list(body.tools).entries()) {
    if (!isJsonObject(tool)) return `tools.${index}: Input should be an object`;
    const extra = unknownMember(tool, ["name", "description", "input_schema", "cache_control", "type", "strict"]);
    if (extra !== undefined) return `tools.${index}.custom.${extra}: Extra inputs are not permitted`;
    if (typeof tool.name !== "string" || !TOOL_NAME.test(tool.name))
      return `tools.${index}.name: String should match pattern`;
    if (names.has(tool.name)) return "tools: Tool names must be unique.";
    names.add(tool.name);
    if (!isJsonObject(tool.input_schema) || tool.input_schema.type !== "object") {
      return `tools.${index}.input_schema.type: Field required`;
    }
  }
  const choice = body.tool_choice;
  if (choice === undefined) return undefined;
  if (!isJsonObject(choice) || !["auto", "any", "tool", "none"].includes(word(choice.type)))
    return "tool_choice: Input should be a valid choice";
  if (names.size === 0) return "tool_choice may only be specified while providing tools.";
  if (choice.type === "tool" && !names.has(choice.name))
    return `Tool '${word(choice.name)}' not found in provided tools`;
  return undefined;
}

function messagesFault(body: JsonObject, signatures: Signatures): string | undefined {
  const messages = list(body.messages);
  if (messages.length === 0) return "messages: at least one message is required";
  const usedIds = new Set<string>();
  let pending: string[] = [];
  let usesTools = false;
  for (const [index, message] of messages.entries()) {
    const at = `messages.${index}`;
    const role = index % 2 === 0 ? "user" : "assistant";
    if (!isJsonObject(message) || message.role !== role)
      return `${at}: roles must alternate, starting with user; expected ${role}`;
    if (typeof message.content === "string") {
      if (blank(message.content)) return `${at}: all messages must have non-empty content`;
      if (pending.length > 0) return unanswered(at, pending);
      continue;
    }
    const blocks = list(message.content);
    if (blocks.length === 0) return `${at}: all messages must have non-empty content`;
    const found = role === "user" ? userFault(blocks, at, pending) : assistantFault(blocks, at, usedIds, signatures);
    if (typeof found === "string") return found;
    pending = found;
    usesTools ||= found.length > 0;
  }
  if (messages.length % 2 === 0)
    return "This model does not support assistant message prefill. The conversation must end with a user message.";
  if (usesTools && list(body.tools).length === 0)
    return "Requests which include `tool_use` or `tool_result` blocks must define tools.";
  return undefined;
}

/** A fault, or the tool_use ids that the next message must answer. */
function assistantFault(
  blocks: readonly Json[],
  at: string,
  usedIds: Set<string>,
  signatures: Signatures,
): string | string[] {
  const ids: string[] = [];
  const last = blocks.at(-1);
  if (isJsonObject(last) && last.type === "thinking")
    return `${at}: The final block in an assistant message cannot be \`thinking\`.`;
  for (const [index, block] of blocks.entries()) {
    const here = `${at}.content.${index}`;
    const fault = blockFault(block, here);
    if (!isJsonObject(block) || fault !== undefined) return fault ?? here;
    switch (word(block.type)) {
      case "text":
        if (blank(block.text)) return `${at}: text content blocks must contain non-whitespace text`;
        break;
      case "thinking":
        if (signatures.get(word(block.signature)) !== block.thinking)
          return `${here}: Invalid \`signature\` in \`thinking\` block`;
        break;
      case "tool_use":
        if (typeof block.id !== "string" || !ID.test(block.id))
          return `${here}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'`;
        if (typeof block.name !== "string" || !TOOL_NAME.test(block.name))
          return `${here}.tool_use.name: String should match pattern`;
        if (!isJsonObject(block.input)) return `${here}.tool_use.input: Input should be a valid dictionary`;
        if (usedIds.has(block.id)) return `${at}: \`tool_use\` ids must be unique`;
        usedIds.add(block.id);
        ids.push(block.id);
        break;
      default:
        return `${here}: Input tag '${word(block.type)}' is not one of an assistant's`;
    }
  }
  return ids;
}

function blockFault(block: Json, here: string): string | undefined {
  if (!isJsonObject(block)) return `${here}: Input should be an object`;
  const known = BLOCKS[word(block.type)];
  if (known === undefined)
    return `${here}: Input tag '${word(block.type)}' found using 'type' does not match any of the expected tags`;
  const extra = unknownMember(block, ["type", "cache_control", ...known]);
  return extra === undefined ? undefined : `${here}.${word(block.type)}.${extra}: Extra inputs are not permitted`;
}

function userFault(blocks: readonly Json[], at: string, pending: readonly string[]): string | string[] {
  const answered = new Set<string>();
  let resultsOver = false;
  for (const [index, block] of blocks.entries()) {
    const here = `${at}.content.${index}`;
    const fault = blockFault(block, here);
    if (!isJsonObject(block) || fault !== undefined) return fault ?? here;
    if (block.type === "tool_result") {
      const id = word(block.tool_use_id);
      if (!pending.includes(id))
        return `${here}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`;
      if (answered.has(id))
        return `${here}: each tool_use must have a single result. Found multiple \`tool_result\` blocks with id: ${id}`;
      if (resultsOver) return `${at}: \`tool_result\` blocks must come first in the content`;
      if (block.is_error === true && (block.content === undefined || block.content === ""))
        return `${here}: content cannot be empty if \`is_error\` is true`;
      answered.add(id);
    } else if (block.type === "text") {
      if (blank(block.text)) return `${at}: text content blocks must be non-empty`;
      resultsOver = true;
    }
  }
  const missing = pending.filter((id) => !answered.has(id));
  return missing.length > 0 ? unanswered(at, missing) : [];
}

function unanswered(at: string, ids: readonly string[]): string {
  return `${at}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${ids.join(", ")}.`;
}
