import type { JsonObject } from "@sluice/core";
import { checkAnthropicRequest } from "./anthropic-rules.ts";
import {
  argumentsOf,
  type ModelServer,
  pieces,
  type Replies,
  type ServerReply,
  sse,
  startModelServer,
  word,
} from "./sse-server.ts";

/**
 * Anthropic's Messages API on a loopback port: streams what the test scripts and refuses what the service would refuse,
 * so that an accepted transcript is a valid one. Point ANTHROPIC_BASE_URL at `url`.
 */
export function startAnthropicServer(replies: Replies): Promise<ModelServer> {
  const signatures = new Map<string, string>();
  return startModelServer(
    {
      path: "/v1/messages",
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
  if (reply.reasoning !== undefined) {
    const signature = `signature-${n}`;
    signatures.set(signature, reply.reasoning);
    block({ type: "thinking", thinking: "", signature: "" }, [
      ...pieces(reply.reasoning).map((thinking) => ({ type: "thinking_delta", thinking })),
      { type: "signature_delta", signature },
    ]);
  }
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
  if (reply.error !== undefined) {
    return [
      ...events,
      event({ type: "error", error: { type: reply.error.type ?? "api_error", message: reply.error.message } }),
    ];
  }
  const stop = reply.stop ?? ((reply.calls?.length ?? 0) > 0 ? "tool_use" : "end_turn");
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
