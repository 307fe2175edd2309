import { isJsonObject, type Json, type JsonObject } from "@sluice/core";
import { checkGatewayRequest } from "./gateway-rules.ts";
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
  word,
} from "./sse-server.ts";
import { limits, textOf, type WireRequest, wireMessage } from "./wire-request.ts";

export const GATEWAY_MODEL = "anthropic/claude-sonnet-4-5";
const UNIFIED: Readonly<Record<string, { readonly unified: string; readonly raw: string }>> = {
  length: { unified: "length", raw: "max_tokens" },
  filter: { unified: "content-filter", raw: "refusal" },
};

const TROUBLES: Dialect["troubles"] = {
  key: { status: 401, type: "authentication_error", message: "Invalid API key" },
  rate: { status: 429, type: "rate_limit_exceeded", message: "Rate limit exceeded" },
  overload: { status: 503, type: "internal_server_error", message: "Overloaded" },
  request: { status: 400, type: "invalid_request_error", message: "temperature: too hot" },
  overflow: {
    status: 400,
    type: "invalid_request_error",
    message: "prompt is too long: 214310 tokens > 200000 maximum",
  },
};

/** Vercel's AI gateway on a loopback port: the SDK's own format both ways, with a provider behind it that signs reasoning. */
export function startGatewayServer(replies: Replies): Promise<ModelServer> {
  const signatures = new Map<string, string>();
  return startModelServer(
    {
      path: "/v4/ai/language-model",
      troubles: TROUBLES,
      check: (request) => checkGatewayRequest(request, GATEWAY_MODEL, signatures),
      events: (reply, _request, n) => eventsOf(reply, n, signatures),
      errorBody: ({ type, message, code }) =>
        JSON.stringify({ error: { message, type, param: null, code: code ?? null }, generationId: "gen_test" }),
    },
    replies,
  );
}

function eventsOf(reply: ServerReply, n: number, signatures: Map<string, string>): string[] {
  const events: string[] = [];
  const push = (type: string, data: JsonObject): void => void events.push(sse({ type, ...data }));
  const block = (kind: "text" | "reasoning", id: string, text: string, end: JsonObject = {}): void => {
    push(`${kind}-start`, { id });
    for (const delta of pieces(text)) push(`${kind}-delta`, { id, delta });
    push(`${kind}-end`, { id, ...end });
  };
  const think = (text: string, suffix = ""): void => {
    const signature = `signature-${n}${suffix}`;
    signatures.set(signature, text);
    block("reasoning", `r${suffix}`, text, { providerMetadata: { anthropic: { signature } } });
  };
  push("stream-start", { warnings: [] });
  push("response-metadata", { id: `gen-${n}`, modelId: GATEWAY_MODEL, timestamp: "2026-01-01T00:00:00.000Z" });
  if (reply.reasoning !== undefined) think(reply.reasoning);
  if (reply.text !== undefined) block("text", "t", reply.text);
  for (const [at, call] of (reply.calls ?? []).entries()) {
    const id = call.id ?? `toolu_${n}_${at}`;
    push("tool-input-start", { id, toolName: call.name });
    for (const delta of pieces(argumentsOf(call))) push("tool-input-delta", { id, delta });
    push("tool-input-end", { id });
    push("tool-call", { toolCallId: id, toolName: call.name, input: argumentsOf(call) });
  }
  if (reply.afterthought !== undefined) think(reply.afterthought, "-last");
  if (reply.fail !== undefined) {
    const { type, message } = TROUBLES[reply.fail];
    push("error", { error: { message, type } });
    return events;
  }
  const { stop } = reply;
  const ended =
    (reply.calls?.length ?? 0) > 0 ? { unified: "tool-calls", raw: "tool_use" } : { unified: "stop", raw: "end_turn" };
  const finishReason = stop === undefined ? ended : (UNIFIED[stop] ?? { unified: "other", raw: stop });
  push("finish", { finishReason, usage: usageOf(reply), providerMetadata: { gateway: { generationId: `gen-${n}` } } });
  return [...events, "data: [DONE]\n\n"];
}

/** Left out, a count is not there; the shape always is. */
function usageOf(reply: ServerReply): JsonObject {
  if (reply.usage === "none") return { inputTokens: {}, outputTokens: {} };
  const { input = 10, output = 20, cacheRead = 0, cacheWrite = 0, reasoning = 0 } = reply.usage ?? {};
  return {
    inputTokens: { total: input, noCache: input - cacheRead - cacheWrite, cacheRead, cacheWrite },
    outputTokens: { total: output, text: output - reasoning, reasoning },
  };
}

export function readGateway(body: JsonObject): WireRequest {
  const [first, ...rest] = objects(body.prompt);
  const messages = rest.map((message) => {
    const parts = objects(message.content);
    const of = (type: string): readonly JsonObject[] => parts.filter((part) => part.type === type);
    const results = of("tool-result").map(({ toolCallId, output }) => ({
      id: word(toolCallId),
      value: isJsonObject(output) ? (output.value ?? null) : null,
    }));
    const calls = of("tool-call").map(({ toolCallId, toolName, input }) => ({
      id: word(toolCallId),
      name: word(toolName),
      input: input ?? null,
    }));
    const reasoning = textOf(message.content, "reasoning");
    const role = message.role === "tool" ? "tool" : message.role === "assistant" ? "assistant" : "user";
    return wireMessage(role, {
      text: textOf(message.content),
      reasoning,
      proofs: of("reasoning").map(proofOf),
      calls,
      results,
    });
  });
  const choice: Json = body.toolChoice ?? null;
  return {
    system: textOf(first?.content),
    messages,
    tools: objects(body.tools).map(({ name }) => word(name)),
    ...limits(body.maxOutputTokens, body.temperature, isJsonObject(choice) ? choice.toolName : undefined),
  };
}

/** The signature of a reasoning part. */
export function proofOf({ providerOptions }: JsonObject): string {
  const data = isJsonObject(providerOptions) ? providerOptions.anthropic : undefined;
  return isJsonObject(data) ? word(data.signature) : "";
}
