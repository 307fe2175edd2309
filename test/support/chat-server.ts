import { isJsonObject, type Json, type JsonObject } from "@sluice/core";
import { checkChatRequest } from "./chat-rules.ts";
import {
  argumentsOf,
  type Dialect,
  type ModelServer,
  objects,
  pieces,
  type RecordedRequest,
  type Replies,
  type ServerReply,
  sse,
  startModelServer,
  stopWord,
  word,
} from "./sse-server.ts";
import {
  joined,
  jsonOf,
  limits,
  textOf,
  unwrapped,
  type WireMessage,
  type WireRequest,
  wireMessage,
} from "./wire-request.ts";

/** What the services that speak chat completions do each in their own way. */
export interface ChatFlavour {
  readonly troubles: Dialect["troubles"];
  /** The member of a message that holds reasoning, both ways; a service without one keeps it to itself. */
  readonly reasoning?: "reasoning" | "reasoning_content";
  /** Whether arguments come in one piece with the call. */
  readonly wholeCalls: boolean;
  readonly cachesPrompts: boolean;
  /** Whether a request without a key is refused. */
  readonly needsKey: boolean;
}

const busy = "The engine is currently overloaded, please try again later";

export const OPENAI_TROUBLES: Dialect["troubles"] = {
  key: { status: 401, type: "invalid_request_error", code: "invalid_api_key", message: "Incorrect API key provided." },
  rate: { status: 429, type: "requests", code: "rate_limit_exceeded", message: "Rate limit reached for requests" },
  overload: { status: 503, type: "server_error", message: busy },
  request: { status: 400, type: "invalid_request_error", message: "Unsupported value: 'temperature'" },
  overflow: {
    status: 400,
    type: "invalid_request_error",
    code: "context_length_exceeded",
    message: "Your input exceeds the context window of this model.",
  },
};

export const OPENAI_CHAT: ChatFlavour = {
  troubles: OPENAI_TROUBLES,
  wholeCalls: false,
  cachesPrompts: true,
  needsKey: true,
};

/** A server of one's own, such as vLLM: numbers for codes, reasoning in the clear. */
export const COMPATIBLE_CHAT: ChatFlavour = {
  troubles: {
    key: { status: 401, type: "AuthenticationError", code: 401, message: "Unauthorized" },
    rate: { status: 429, type: "RateLimitError", code: 429, message: "too many requests" },
    overload: { status: 503, type: "ServiceUnavailableError", code: 503, message: "no worker is free" },
    request: { status: 400, type: "BadRequestError", code: 400, message: "temperature must be non-negative" },
    overflow: {
      status: 400,
      type: "BadRequestError",
      code: 400,
      message: "This model's maximum context length is 8192 tokens. However, you requested 9001 tokens.",
    },
  },
  reasoning: "reasoning_content",
  wholeCalls: false,
  cachesPrompts: true,
  needsKey: false,
};

export const OLLAMA_CHAT: ChatFlavour = {
  troubles: {
    key: { status: 401, type: "authentication_error", message: "unauthorized" },
    rate: { status: 429, type: "api_error", message: "too many requests" },
    overload: {
      status: 503,
      type: "api_error",
      message: "server busy, please try again. maximum pending requests exceeded",
    },
    request: { status: 400, type: "invalid_request_error", message: "invalid temperature" },
    overflow: { status: 400, type: "invalid_request_error", message: "the input length exceeds the context length" },
  },
  reasoning: "reasoning",
  wholeCalls: true,
  cachesPrompts: false,
  needsKey: false,
};

const STOPS = { length: "length", filter: "content_filter" };

/** Chat completions on a loopback port: streams what the test scripts and refuses what the services would refuse. */
export function startChatServer(replies: Replies, flavour: ChatFlavour): Promise<ModelServer> {
  return startModelServer(
    {
      path: "/v1/chat/completions",
      troubles: flavour.troubles,
      check: (request) => checkChatRequest(request, flavour),
      events: (reply, request, n) => eventsOf(reply, request, n, flavour),
      errorBody: openAIErrorBody,
    },
    replies,
  );
}

export const openAIErrorBody: Dialect["errorBody"] = ({ type, message, code }) =>
  JSON.stringify({ error: { message, type, param: null, code: code ?? null } });

function eventsOf(reply: ServerReply, request: RecordedRequest, n: number, flavour: ChatFlavour): string[] {
  const base = { id: `chatcmpl-${n}`, object: "chat.completion.chunk", created: 1, model: word(request.body.model) };
  const events: string[] = [];
  const push = (delta: JsonObject, finish: string | null = null): void => {
    events.push(sse({ ...base, choices: [{ index: 0, delta, finish_reason: finish }] }));
  };
  const think = (text = ""): void => {
    const { reasoning } = flavour;
    if (reasoning !== undefined) for (const piece of pieces(text)) push({ [reasoning]: piece });
  };
  push({ role: "assistant", content: "" });
  think(reply.reasoning);
  for (const content of pieces(reply.text ?? "")) push({ content });
  for (const [index, call] of (reply.calls ?? []).entries()) {
    const start = (fragment: string): JsonObject => ({
      index,
      id: call.id ?? `call_${n}_${index}`,
      type: "function",
      function: { name: call.name, arguments: fragment },
    });
    push({ tool_calls: [start(flavour.wholeCalls ? argumentsOf(call) : "")] });
    for (const fragment of flavour.wholeCalls ? [] : pieces(argumentsOf(call)))
      push({ tool_calls: [{ index, function: { arguments: fragment } }] });
  }
  think(reply.afterthought);
  if (reply.fail !== undefined) {
    const { message, type, code } = flavour.troubles[reply.fail];
    return [...events, sse({ error: { message, type, param: null, code: code ?? null } })];
  }
  push({}, stopWord(reply, STOPS, (reply.calls?.length ?? 0) > 0 ? "tool_calls" : "stop"));
  const options = request.body.stream_options;
  if (reply.usage !== "none" && isJsonObject(options) && options.include_usage === true) {
    const { input = 10, output = 20, cacheRead = 0, reasoning = 0 } = reply.usage ?? {};
    const details: JsonObject = {
      prompt_tokens_details: { cached_tokens: cacheRead },
      completion_tokens_details: { reasoning_tokens: reasoning },
    };
    const usage: Json = {
      prompt_tokens: input,
      completion_tokens: output,
      total_tokens: input + output,
      ...(flavour.cachesPrompts ? details : {}),
    };
    events.push(sse({ ...base, choices: [], usage }));
  }
  events.push("data: [DONE]\n\n");
  return events;
}

/** Results are messages of their own here; those of one turn are put together. */
export function readChat(body: JsonObject): WireRequest {
  let system = "";
  const messages: WireMessage[] = [];
  for (const message of objects(body.messages)) {
    const text = textOf(message.content);
    const role = word(message.role);
    if (role === "system" || role === "developer") system += text;
    else if (role === "tool") {
      messages.push(wireMessage("tool", { results: [{ id: word(message.tool_call_id), value: unwrapped(text) }] }));
    } else if (role === "assistant") {
      const calls = objects(message.tool_calls).map((call) => {
        const made = isJsonObject(call.function) ? call.function : {};
        return { id: word(call.id), name: word(made.name), input: jsonOf(made.arguments) };
      });
      const reasoning = word(message.reasoning_content) || word(message.reasoning);
      messages.push(wireMessage("assistant", { text, reasoning, calls }));
    } else messages.push(wireMessage("user", { text }));
  }
  const named = (tool: JsonObject): Json | undefined => (isJsonObject(tool.function) ? tool.function.name : undefined);
  const [forced] = objects([body.tool_choice ?? null]);
  return {
    system,
    messages: joined(messages),
    tools: objects(body.tools).map((tool) => word(named(tool))),
    ...limits(body.max_tokens ?? body.max_completion_tokens, body.temperature, forced && named(forced)),
  };
}
