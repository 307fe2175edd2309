import { isJsonObject, type Json, type JsonObject } from "@sluice/core";
import { checkOpenAIRequest } from "./openai-rules.ts";
import {
  argumentsOf,
  type ModelServer,
  pieces,
  type RecordedRequest,
  type Replies,
  type ServerReply,
  sse,
  startModelServer,
  word,
} from "./sse-server.ts";

/**
 * OpenAI's chat completions on a loopback port: streams what the test scripts and refuses what the service or a local
 * server would refuse. Point OPENAI_COMPATIBLE_BASE_URL at `url`.
 */
export function startOpenAIServer(replies: Replies): Promise<ModelServer> {
  return startModelServer(
    {
      path: "/v1/chat/completions",
      check: checkOpenAIRequest,
      events: eventsOf,
      errorBody: ({ type, message, code }) =>
        JSON.stringify({ error: { message, type, param: null, code: code ?? null } }),
    },
    replies,
  );
}

function eventsOf(reply: ServerReply, request: RecordedRequest, n: number): string[] {
  const base = { id: `chatcmpl-${n}`, object: "chat.completion.chunk", created: 1, model: word(request.body.model) };
  const events: string[] = [];
  const push = (delta: JsonObject, finish: string | null = null): void => {
    events.push(sse({ ...base, choices: [{ index: 0, delta, finish_reason: finish }] }));
  };
  push({ role: "assistant", content: "" });
  for (const reasoning_content of pieces(reply.reasoning ?? "")) push({ reasoning_content });
  for (const content of pieces(reply.text ?? "")) push({ content });
  for (const [index, call] of (reply.calls ?? []).entries()) {
    const start: Json = {
      index,
      id: call.id ?? `call_${n}_${index}`,
      type: "function",
      function: { name: call.name, arguments: "" },
    };
    push({ tool_calls: [start] });
    for (const fragment of pieces(argumentsOf(call)))
      push({ tool_calls: [{ index, function: { arguments: fragment } }] });
  }
  if (reply.error !== undefined) {
    const { message, type = "server_error", code } = reply.error;
    return [...events, sse({ error: { message, type, param: null, code: code ?? null } })];
  }
  push({}, reply.stop ?? ((reply.calls?.length ?? 0) > 0 ? "tool_calls" : "stop"));
  const options = request.body.stream_options;
  if (reply.usage !== "none" && isJsonObject(options) && options.include_usage === true) {
    const { input = 10, output = 20, cacheRead = 0, reasoning = 0 } = reply.usage ?? {};
    const usage = {
      prompt_tokens: input,
      completion_tokens: output,
      total_tokens: input + output,
      prompt_tokens_details: { cached_tokens: cacheRead },
      completion_tokens_details: { reasoning_tokens: reasoning },
    };
    events.push(sse({ ...base, choices: [], usage }));
  }
  events.push("data: [DONE]\n\n");
  return events;
}
