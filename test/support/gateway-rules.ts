import { isJsonObject, type Json, type JsonObject } from "@sluice/core";
import { proofOf } from "./gateway-server.ts";
import { blank, list, type RecordedRequest, type Refusal, unknownMember, word } from "./sse-server.ts";

const BODY = [
  "prompt",
  "tools",
  "toolChoice",
  "maxOutputTokens",
  "temperature",
  "topP",
  "seed",
  "stopSequences",
  "reasoning",
  "providerOptions",
  "includeRawChunks",
  "headers",
];
const PARTS: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  user: { text: ["text"] },
  assistant: {
    text: ["text"],
    reasoning: ["text"],
    "tool-call": ["toolCallId", "toolName", "input"],
  },
  tool: { "tool-result": ["toolCallId", "toolName", "output"] },
};

/** What the gateway, and the provider behind it, refuse of what a tool loop could get wrong. */
export function checkGatewayRequest(
  { headers, body }: RecordedRequest,
  model: string,
  signatures: ReadonlyMap<string, string>,
): Refusal | undefined {
  if (!/^Bearer \S/.test(headers.authorization ?? "") || headers["ai-gateway-auth-method"] !== "api-key")
    return { status: 401, type: "authentication_error", message: "Invalid API key" };
  if (headers["ai-language-model-id"] !== model)
    return {
      status: 404,
      type: "model_not_found",
      message: `Model '${String(headers["ai-language-model-id"])}' not found`,
    };
  const message = headersFault(headers) ?? bodyFault(body) ?? toolsFault(body) ?? promptFault(body, signatures);
  return message === undefined ? undefined : { status: 400, type: "invalid_request_error", message };
}

function headersFault(headers: RecordedRequest["headers"]): string | undefined {
  if (headers["ai-language-model-streaming"] !== "true") return "this server only streams";
  if (headers["ai-language-model-specification-version"] !== "4") return "unknown version of the specification";
  const stray = Object.keys(headers).find((name) => name.startsWith("ai-o11y-"));
  return stray === undefined ? undefined : `${stray} tells about a deployment`;
}

function bodyFault(body: JsonObject): string | undefined {
  const extra = unknownMember(body, BODY);
  return extra === undefined ? undefined : `Unrecognized key: "${extra}"`;
}

function toolsFault(body: JsonObject): string | undefined {
  const names = new Set<string>();
  for (const tool of list(body.tools)) {
    if (!isJsonObject(tool) || tool.type !== "function" || blank(tool.name)) return "tools: invalid input";
    const extra = unknownMember(tool, ["type", "name", "description", "inputSchema", "providerOptions", "strict"]);
    if (extra !== undefined) return `tools: Unrecognized key: "${extra}"`;
    if (names.has(word(tool.name))) return "tools: Tool names must be unique.";
    names.add(word(tool.name));
    if (!isJsonObject(tool.inputSchema) || tool.inputSchema.type !== "object")
      return "tools: input_schema.type: Field required";
  }
  const choice = body.toolChoice;
  if (choice === undefined) return undefined;
  if (names.size === 0) return "tool_choice may only be specified while providing tools.";
  if (!isJsonObject(choice)) return "toolChoice: invalid input";
  return choice.type !== "tool" || names.has(word(choice.toolName))
    ? undefined
    : "Tool choice not found in provided tools";
}

function promptFault(body: JsonObject, signatures: ReadonlyMap<string, string>): string | undefined {
  const messages = list(body.prompt);
  let pending: readonly string[] = [];
  const used = new Set<string>();
  for (const [index, message] of messages.entries()) {
    const at = `prompt[${index}]`;
    if (!isJsonObject(message)) return `${at}: invalid input`;
    const role = word(message.role);
    if (role === "system") {
      if (index > 0 || blank(message.content)) return `${at}: a system message stands first and says something`;
      continue;
    }
    const known = PARTS[role];
    const parts = list(message.content);
    if (known === undefined || parts.length === 0) return `${at}: all messages must have non-empty content`;
    const ids: string[] = [];
    for (const part of parts) {
      const fault = partFault(part, known, at, signatures);
      if (!isJsonObject(part) || fault !== undefined) return fault ?? at;
      if (part.toolCallId !== undefined) ids.push(word(part.toolCallId));
    }
    const answers = role === "tool" ? ids : [];
    if (
      ids.length !== new Set(ids).size ||
      answers.length !== pending.length ||
      answers.some((id) => !pending.includes(id))
    )
      return `${at}: tool_use ids and tool_result blocks do not pair: ${pending.join(", ")} and ${answers.join(", ")}`;
    if (role === "assistant" && ids.some((id) => used.has(id))) return `${at}: \`tool_use\` ids must be unique`;
    const last = parts.at(-1);
    if (role === "assistant" && isJsonObject(last) && last.type === "reasoning")
      return `${at}: The final block in an assistant message cannot be \`thinking\`.`;
    for (const id of ids) used.add(id);
    pending = role === "assistant" ? ids : [];
  }
  const end = messages.at(-1);
  return isJsonObject(end) && end.role !== "assistant" && end.role !== "system"
    ? undefined
    : "The conversation must end with a user message.";
}

function partFault(
  part: Json,
  kinds: Readonly<Record<string, readonly string[]>>,
  at: string,
  signatures: ReadonlyMap<string, string>,
): string | undefined {
  const type = isJsonObject(part) ? word(part.type) : "";
  const known = kinds[type];
  if (!isJsonObject(part) || known === undefined) return `${at}: invalid part ${type}`;
  const extra = unknownMember(part, ["type", "providerOptions", ...known]);
  if (extra !== undefined) return `${at}: Unrecognized key: "${extra}"`;
  switch (type) {
    case "text":
      return blank(part.text) ? `${at}: text content blocks must contain non-whitespace text` : undefined;
    case "reasoning":
      return signatures.get(proofOf(part)) === part.text
        ? undefined
        : `${at}: Invalid \`signature\` in \`thinking\` block`;
    case "tool-call":
      return isJsonObject(part.input) ? undefined : `${at}: tool_use.input: Input should be a valid dictionary`;
    default: {
      const output = isJsonObject(part.output) ? part.output : {};
      const kind = word(output.type);
      if (!["text", "json", "content", "error-text", "error-json"].includes(kind) || output.value === undefined)
        return `${at}: output of an unknown kind: ${kind}`;
      return undefined;
    }
  }
}
