import { isJsonObject, type Json, type JsonObject } from "@sluice/core";
import { OPENAI_TROUBLES, openAIErrorBody } from "./chat-server.ts";
import { checkResponsesRequest } from "./responses-rules.ts";
import {
  argumentsOf,
  list,
  type ModelServer,
  objects,
  pieces,
  type RecordedRequest,
  type Replies,
  type ServerReply,
  sse,
  startModelServer,
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

const STOPS = { length: "max_output_tokens", filter: "content_filter" };

/**
 * OpenAI's Responses API on a loopback port. It remembers nothing (`store` has to be false), so that reasoning goes out
 * encrypted and has to come back so.
 */
export function startResponsesServer(replies: Replies): Promise<ModelServer> {
  const sealed = new Map<string, string>();
  return startModelServer(
    {
      path: "/v1/responses",
      troubles: OPENAI_TROUBLES,
      check: (request) => checkResponsesRequest(request, sealed),
      events: (reply, request, n) => eventsOf(reply, request, n, sealed),
      errorBody: openAIErrorBody,
    },
    replies,
  );
}

function eventsOf(reply: ServerReply, { body }: RecordedRequest, n: number, sealed: Map<string, string>): string[] {
  const events: string[] = [];
  const push = (type: string, data: JsonObject): void => {
    events.push(sse({ type, sequence_number: events.length, ...data }, type));
  };
  const response = { id: `resp_${n}`, object: "response", created_at: 1, model: word(body.model) };
  push("response.created", { response: { ...response, status: "in_progress", output: [] } });
  push("response.in_progress", { response: { ...response, status: "in_progress", output: [] } });

  let output_index = 0;
  const item = (begun: JsonObject, done: JsonObject, between: () => void): void => {
    push("response.output_item.added", { output_index, item: begun });
    between();
    push("response.output_item.done", { output_index, item: { ...begun, ...done } });
    output_index += 1;
  };
  const think = (text: string, suffix = ""): void => {
    const id = `rs_${n}${suffix}`;
    // Encrypted content is only given to those who ask for it, and grows with the summary.
    const asked = list(body.include).includes("reasoning.encrypted_content");
    const content = (state: string): JsonObject => (asked ? { encrypted_content: `sealed-${n}${suffix}${state}` } : {});
    if (asked) sealed.set(`sealed-${n}${suffix}`, text);
    const part = { item_id: id, output_index, summary_index: 0 };
    item({ id, type: "reasoning", summary: [], ...content("-begun") }, content(""), () => {
      push("response.reasoning_summary_part.added", { ...part, part: { type: "summary_text", text: "" } });
      for (const delta of pieces(text)) push("response.reasoning_summary_text.delta", { ...part, delta });
      push("response.reasoning_summary_text.done", { ...part, text });
      push("response.reasoning_summary_part.done", { ...part, part: { type: "summary_text", text } });
    });
  };

  if (reply.reasoning !== undefined) think(reply.reasoning);
  if (reply.text !== undefined) {
    const id = `msg_${n}`;
    const part = { item_id: id, output_index, content_index: 0 };
    item(
      { id, type: "message", role: "assistant", status: "in_progress", content: [] },
      { status: "completed" },
      () => {
        push("response.content_part.added", { ...part, part: { type: "output_text", text: "", annotations: [] } });
        for (const delta of pieces(reply.text ?? ""))
          push("response.output_text.delta", { ...part, delta, logprobs: [] });
        push("response.output_text.done", { ...part, text: reply.text ?? "" });
      },
    );
  }
  for (const [at, call] of (reply.calls ?? []).entries()) {
    const id = `fc_${n}_${at}`;
    const begun = { id, type: "function_call", status: "in_progress", call_id: call.id ?? `call_${n}_${at}` };
    const whole = argumentsOf(call);
    item({ ...begun, name: call.name, arguments: "" }, { status: "completed", arguments: whole }, () => {
      const part = { item_id: id, output_index };
      for (const delta of pieces(whole)) push("response.function_call_arguments.delta", { ...part, delta });
      push("response.function_call_arguments.done", { ...part, arguments: whole });
    });
  }
  if (reply.afterthought !== undefined) think(reply.afterthought, "-last");
  if (reply.fail !== undefined) {
    const { type, code, message } = OPENAI_TROUBLES[reply.fail];
    push("error", { error: { type, code: code === undefined ? null : String(code), message, param: null } });
    return events;
  }
  const reason = reply.stop === "length" || reply.stop === "filter" ? STOPS[reply.stop] : reply.stop;
  const status = reason === undefined ? "completed" : "incomplete";
  const incomplete_details = reason === undefined ? null : { reason };
  push(`response.${status}`, { response: { ...response, status, incomplete_details, output: [], ...usageOf(reply) } });
  return events;
}

function usageOf(reply: ServerReply): JsonObject {
  if (reply.usage === "none") return { usage: null };
  const { input = 10, output = 20, cacheRead = 0, reasoning = 0 } = reply.usage ?? {};
  return {
    usage: {
      input_tokens: input,
      input_tokens_details: { cached_tokens: cacheRead },
      output_tokens: output,
      output_tokens_details: { reasoning_tokens: reasoning },
      total_tokens: input + output,
    },
  };
}

/** Every part of a message is an item of its own here; those of one turn are put together. */
export function readResponses(body: JsonObject): WireRequest {
  let system = "";
  const messages: WireMessage[] = [];
  for (const item of objects(body.input)) {
    const role = word(item.role);
    switch (word(item.type) || role) {
      case "system":
      case "developer":
        system += textOf(item.content, "input_text");
        break;
      case "user":
        messages.push(wireMessage("user", { text: textOf(item.content, "input_text") }));
        break;
      case "assistant":
        messages.push(wireMessage("assistant", { text: textOf(item.content, "output_text") }));
        break;
      case "reasoning": {
        const reasoning = textOf(item.summary, "summary_text");
        messages.push(wireMessage("assistant", { reasoning, proofs: [word(item.encrypted_content)] }));
        break;
      }
      case "function_call": {
        const call = { id: word(item.call_id), name: word(item.name), input: jsonOf(item.arguments) };
        messages.push(wireMessage("assistant", { calls: [call] }));
        break;
      }
      case "function_call_output":
        messages.push(wireMessage("tool", { results: [{ id: word(item.call_id), value: unwrapped(item.output) }] }));
    }
  }
  const choice: Json = body.tool_choice ?? null;
  return {
    system,
    messages: joined(messages),
    tools: objects(body.tools).map(({ name }) => word(name)),
    ...limits(body.max_output_tokens, body.temperature, isJsonObject(choice) ? choice.name : undefined),
  };
}
