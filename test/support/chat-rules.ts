import { isJsonObject, type JsonObject, parseJson } from "@sluice/core";
import type { ChatFlavour } from "./chat-server.ts";
import { list, type RecordedRequest, type Refusal, unknownMember, word } from "./sse-server.ts";

const NAME = /^[a-zA-Z0-9_-]{1,64}$/;

const BODY = [
  "model",
  "messages",
  "stream",
  "stream_options",
  "tools",
  "tool_choice",
  "temperature",
  "top_p",
  "seed",
  "stop",
  "max_tokens",
  "max_completion_tokens",
  "reasoning_effort",
];
const MESSAGE: Readonly<Record<string, readonly string[]>> = {
  system: ["content"],
  developer: ["content"],
  user: ["content"],
  assistant: ["content", "tool_calls"],
  tool: ["content", "tool_call_id"],
};

/** What OpenAI's chat API, and the local servers that speak it, refuse of what a tool loop could get wrong. */
export function checkChatRequest(request: RecordedRequest, flavour: ChatFlavour): Refusal | undefined {
  const { body, headers } = request;
  const key = /^Bearer \S/.test(headers.authorization ?? "");
  if (flavour.needsKey && !key) return { ...flavour.troubles.key, message: "You didn't provide an API key." };
  const message = bodyFault(body) ?? toolsFault(body) ?? messagesFault(body, flavour);
  return message === undefined ? undefined : { status: 400, type: "invalid_request_error", message };
}

function bodyFault(body: JsonObject): string | undefined {
  const extra = unknownMember(body, BODY);
  if (extra !== undefined) return `Unrecognized request argument supplied: ${extra}`;
  if (typeof body.model !== "string" || body.model === "") return "you must provide a model parameter";
  return body.stream === true ? undefined : "this server only streams";
}

function toolsFault(body: JsonObject): string | undefined {
  const names = new Set<unknown>();
  for (const [index, tool] of list(body.tools).entries()) {
    const fn = isJsonObject(tool) && tool.type === "function" ? tool.function : undefined;
    if (!isJsonObject(fn) || typeof fn.name !== "string" || !NAME.test(fn.name))
      return `Invalid 'tools[${index}].function.name'`;
    if (names.has(fn.name)) return `Invalid 'tools': tool names must be unique, '${fn.name}' is not`;
    names.add(fn.name);
    if (!isJsonObject(fn.parameters) || fn.parameters.type !== "object")
      return `Invalid schema for function '${fn.name}'`;
  }
  if (Array.isArray(body.tools) && body.tools.length === 0) return "[] is too short - 'tools'";
  const choice = body.tool_choice;
  if (choice === undefined) return undefined;
  if (names.size === 0) return "'tool_choice' is only allowed when 'tools' are specified.";
  if (choice === "auto" || choice === "none" || choice === "required") return undefined;
  const fn = isJsonObject(choice) && choice.type === "function" ? choice.function : undefined;
  return isJsonObject(fn) && names.has(fn.name) ? undefined : "Tool choice not found in 'tools'";
}

function messagesFault(body: JsonObject, flavour: ChatFlavour): string | undefined {
  const messages = list(body.messages);
  if (messages.length === 0) return "[] is too short - 'messages'";
  let pending: string[] = [];
  for (const [index, message] of messages.entries()) {
    const at = `messages.[${index}]`;
    if (!isJsonObject(message)) return `${at} is not an object`;
    const known = ["role", flavour.reasoning ?? "role", ...(MESSAGE[word(message.role)] ?? [])];
    const extra = unknownMember(message, known);
    if (extra !== undefined) return `Additional properties are not allowed ('${extra}' was unexpected) - '${at}'`;
    if (message.role === "tool") {
      const id = message.tool_call_id;
      if (typeof id !== "string" || !pending.includes(id)) {
        return `${at}: messages with role 'tool' must be a response to a preceding message with 'tool_calls'.`;
      }
      if (typeof message.content !== "string" && !Array.isArray(message.content)) return `${at}.content is required`;
      pending = pending.filter((other) => other !== id);
      continue;
    }
    if (pending.length > 0) return unanswered(pending);
    if (message.role === "assistant") {
      const found = assistantFault(message, at);
      if (typeof found === "string") return found;
      pending = found;
    } else if (!["system", "developer", "user"].includes(word(message.role))) return `${at}.role is invalid`;
    else if (message.content === undefined || message.content === null || message.content === "")
      return `${at}.content is required`;
  }
  return pending.length > 0 ? unanswered(pending) : undefined;
}

function assistantFault(message: JsonObject, at: string): string | string[] {
  const calls = list(message.tool_calls);
  if (Array.isArray(message.tool_calls) && calls.length === 0) return `${at}.tool_calls: [] is too short`;
  if (calls.length === 0 && (typeof message.content !== "string" || message.content === "")) {
    return `${at}: assistant messages need content or tool_calls`;
  }
  const ids: string[] = [];
  for (const [index, call] of calls.entries()) {
    const here = `${at}.tool_calls[${index}]`;
    if (!isJsonObject(call) || call.type !== "function" || !isJsonObject(call.function))
      return `${here} is not a function call`;
    if (typeof call.id !== "string" || call.id === "") return `${here}.id is required`;
    if (ids.includes(call.id)) return `${here}.id: duplicate id ${call.id}`;
    if (typeof call.function.name !== "string" || !NAME.test(call.function.name))
      return `${here}.function.name does not match the pattern`;
    const args = call.function.arguments;
    // The service takes any string; servers that fill a chat template need an object, so that is what is asked for.
    const parsed = typeof args === "string" ? parseJson(args) : undefined;
    if (parsed === undefined || !parsed.ok || !isJsonObject(parsed.value))
      return `${here}.function.arguments is not a JSON object`;
    ids.push(call.id);
  }
  return ids;
}

function unanswered(ids: readonly string[]): string {
  return `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${ids.join(", ")}`;
}
