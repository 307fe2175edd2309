import type { JsonObject } from "@sluice/core";
import { checkAnthropicRequest } from "./anthropic-rules.ts";
import {
  argumentsOf,
  type Dialect,
  type ModelServer,
  objects,
  pieces,
  type Replies,
  type ServerReply,
  sse,
  startModelServer,
  stopWord,
  word,
} from "./sse-server.ts";
import { jsonOf, limits, textOf, type WireRequest, wireMessage } from "./wire-request.ts";

const STOPS = { length: "max_tokens", filter: "refusal" };
const TROUBLES: Dialect["troubles"] = {
  key: { status: 401, type: "authentication_error", message: "invalid x-api-key" },
  rate: {
    status: 429,
    type: "rate_limit_error",
    message: "This request would exceed your rate limit of 50 requests per minute",
  },
  overload: { status: 529, type: "overloaded_error", message: "Overloaded" },
  request: { status: 400, type: "invalid_request_error", message: "temperature: too hot" },
  overflow: {
    status: 400,
    type: "invalid_request_error",
    message: "prompt is too long: 214310 tokens > 200000 maximum",
  },
};

/**
 * Anthropic's Messages API on a loopback port: streams what the test scripts and refuses what the service would refuse,
 * so that an accepted transcript is a valid one. Point ANTHROPIC_BASE_URL at `url`.
 */
export function startAnthropicServer(replies: Replies): Promise<ModelServer> {
  const signatures = new Map<string, string>();
  return startModelServer(
    {
      path: "/v1/messages",
      troubles: TROUBLES,
      check: (request) => checkAnthropicRequest(request, signatures),
      events: (reply, request, n) => eventsOf(reply, word(request.body.model), n, signatures),
      errorBody: ({ type, message }) =>
        JSON.stringify({ type: "error", error: { type, message }, request_id: "req_test" }),
    },
    replies,
  );
}

function eventsOf(reply: ServerReply, model: string, n: number, signatures: Map<string, string>): string[] {
  const usage = reply.usage === "none" ? {} : (reply.usage ?? {});
  const message = {
    id: `msg_${n}`,
    type: "message",
    role: "assistant",
    model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: {
      input_tokens: usage.input ?? 10,
      output_tokens: 1,
      cache_read_input_tokens: usage.cacheRead ?? 0,
      cache_creation_input_tokens: usage.cacheWrite ?? 0,
    },
  };
  const events = [event({ type: "message_start", message }), event({ type: "ping" })];
  let index = 0;
  const block = (content: JsonObject, deltas: readonly JsonObject[]): void => {
    events.push(event({ type: "content_block_start", index, content_block: content }));
    for (const delta of deltas) events.push(event({ type: "content_block_delta", index, delta }));
    events.push(event({ type: "content_block_stop", index }));
    index += 1;
  };
  const think = (text: string, signature: string): void => {
    signatures.set(signature, text);
    block({ type: "thinking", thinking: "", signature: "" }, [
      ...pieces(text).map((thinking) => ({ type: "thinking_delta", thinking })),
      { type: "signature_delta", signature },
    ]);
  };
  if (reply.reasoning !== undefined) think(reply.reasoning, `signature-${n}`);
  if (reply.text !== undefined) {
    block(
      { type: "text", text: "" },
      pieces(reply.text).map((text) => ({ type: "text_delta", text })),
    );
  }
  for (const [at, call] of (reply.calls ?? []).entries()) {
    const deltas = pieces(argumentsOf(call)).map((partial_json) => ({ type: "input_json_delta", partial_json }));
    block({ type: "tool_use", id: call.id ?? `toolu_${n}_${at}`, name: call.name, input: {} }, deltas);
  }
  if (reply.afterthought !== undefined) think(reply.afterthought, `signature-${n}-last`);
  if (reply.fail !== undefined) {
    const { type, message } = TROUBLES[reply.fail];
    return [...events, event({ type: "error", error: { type, message } })];
  }
  const stop = stopWord(reply, STOPS, (reply.calls?.length ?? 0) > 0 ? "tool_use" : "end_turn");
  const details = usage.reasoning === undefined ? {} : { output_tokens_details: { thinking_tokens: usage.reasoning } };
  events.push(
    event({
      type: "message_delta",
      delta: { stop_reason: stop, stop_sequence: null },
      usage: { output_tokens: usage.output ?? 20, ...details },
    }),
    event({ type: "message_stop" }),
  );
  return events;
}

function event(data: JsonObject): string {
  return sse(data, word(data.type));
}

export function readAnthropic(body: JsonObject): WireRequest {
  const messages = objects(body.messages).map((message) => {
    const blocks =
      typeof message.content === "string" ? [{ type: "text", text: message.content }] : objects(message.content);
    const of = (type: string): readonly JsonObject[] => blocks.filter((block) => block.type === type);
    const results = of("tool_result").map(({ tool_use_id, content }) => ({
      id: word(tool_use_id),
      value: jsonOf(content),
    }));
    const role = results.length > 0 ? "tool" : message.role === "assistant" ? "assistant" : "user";
    return wireMessage(role, {
      text: textOf(blocks),
      reasoning: of("thinking")
        .map(({ thinking }) => word(thinking))
        .join(""),
      proofs: of("thinking").map(({ signature }) => word(signature)),
      calls: of("tool_use").map(({ id, name, input }) => ({ id: word(id), name: word(name), input: input ?? null })),
      results,
    });
  });
  const forced = objects([body.tool_choice ?? null])[0]?.name;
  const tools = objects(body.tools).map(({ name }) => word(name));
  return { system: textOf(body.system), messages, tools, ...limits(body.max_tokens, body.temperature, forced) };
}
