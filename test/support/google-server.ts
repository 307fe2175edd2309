import { isJsonObject, type Json, type JsonObject } from "@sluice/core";
import { checkGoogleRequest } from "./google-rules.ts";
import {
  type Dialect,
  list,
  type ModelServer,
  objects,
  pieces,
  type Refusal,
  type Replies,
  type ServerCall,
  type ServerReply,
  sse,
  startModelServer,
  stopWord,
  word,
} from "./sse-server.ts";
import { limits, type WireRequest, wireMessage } from "./wire-request.ts";

export const GOOGLE_MODEL = "gemini-3-pro-preview";
const STOPS = { length: "MAX_TOKENS", filter: "SAFETY" };

const TROUBLES: Dialect["troubles"] = {
  // A wrong key is said to be a wrong argument; only the reason in the details tells.
  key: {
    status: 400,
    type: "INVALID_ARGUMENT",
    code: "API_KEY_INVALID",
    message: "API key not valid. Please pass a valid API key.",
  },
  rate: { status: 429, type: "RESOURCE_EXHAUSTED", message: "You exceeded your current quota of requests per minute." },
  overload: { status: 503, type: "UNAVAILABLE", message: "The model is overloaded. Please try again later." },
  request: { status: 400, type: "INVALID_ARGUMENT", message: "Unable to submit request because of its temperature." },
  overflow: {
    status: 400,
    type: "INVALID_ARGUMENT",
    message: "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
  },
};

/** Google's Gemini API on a loopback port: streams what the test scripts and refuses what the service would refuse. */
export function startGoogleServer(replies: Replies): Promise<ModelServer> {
  const signatures = new Set<string>();
  return startModelServer(
    {
      path: `/v1beta/models/${GOOGLE_MODEL}:streamGenerateContent?alt=sse`,
      troubles: TROUBLES,
      retryAfterInBody: true,
      check: (request) => checkGoogleRequest(request, signatures),
      events: (reply, _request, n) => eventsOf(reply, n, signatures),
      errorBody: (refusal) => JSON.stringify({ error: errorOf(refusal) }),
    },
    replies,
  );
}

/** In the format of Google's RPC errors: what went wrong and when to come back are details. */
function errorOf({ status, type, message, code, retryAfterSeconds }: Refusal): JsonObject {
  const details: Json[] = [];
  const detail = (kind: string, data: JsonObject): void => {
    details.push({ "@type": `type.googleapis.com/google.rpc.${kind}`, ...data });
  };
  if (code !== undefined) detail("ErrorInfo", { reason: code, domain: "googleapis.com" });
  if (retryAfterSeconds !== undefined) detail("RetryInfo", { retryDelay: `${retryAfterSeconds}s` });
  return { code: status, message, status: type, ...(details.length > 0 ? { details } : {}) };
}

function eventsOf(reply: ServerReply, n: number, signatures: Set<string>): string[] {
  const events: string[] = [];
  const base = { responseId: `response-${n}`, modelVersion: GOOGLE_MODEL };
  const usage = usageOf(reply);
  const push = (parts: readonly JsonObject[], end: JsonObject = {}): void => {
    events.push(sse({ ...base, candidates: [{ index: 0, content: { role: "model", parts }, ...end }], ...usage }));
  };
  const sign = (name: string): JsonObject => {
    const thoughtSignature = `${name}-${n}`;
    signatures.add(thoughtSignature);
    return { thoughtSignature };
  };
  for (const text of pieces(reply.reasoning ?? "")) push([{ text, thought: true }]);
  for (const text of pieces(reply.text ?? "")) push([{ text }]);
  const calls = reply.calls ?? [];
  // One answer is signed once: at its first call, else behind its text.
  for (const [at, call] of calls.entries())
    push([{ functionCall: callOf(call, n, at), ...(at === 0 ? sign("signature") : {}) }]);
  if (calls.length === 0 && reply.text !== undefined && reply.reasoning !== undefined)
    push([{ text: "", ...sign("signature") }]);
  for (const text of pieces(reply.afterthought ?? "")) push([{ text, thought: true }]);
  if (reply.fail !== undefined) return [...events, sse({ error: errorOf(TROUBLES[reply.fail]) })];
  events.push(
    sse({ ...base, candidates: [{ index: 0, content: {}, finishReason: stopWord(reply, STOPS, "STOP") }], ...usage }),
  );
  return events;
}

/** Arguments are a value here, not characters; what is no value is sent as the text it is, which the service never does. */
function callOf(call: ServerCall, n: number, at: number): JsonObject {
  const named = { id: call.id ?? `call-${n}-${at}`, name: call.name };
  if (call.rawInput !== undefined) return call.rawInput === "" ? named : { ...named, args: call.rawInput };
  return { ...named, args: call.input ?? {} };
}

function usageOf(reply: ServerReply): JsonObject {
  if (reply.usage === "none") return {};
  const { input = 10, output = 20, cacheRead = 0, reasoning = 0 } = reply.usage ?? {};
  return {
    usageMetadata: {
      promptTokenCount: input,
      // Thoughts are counted apart.
      candidatesTokenCount: output - reasoning,
      thoughtsTokenCount: reasoning,
      cachedContentTokenCount: cacheRead,
      totalTokenCount: input + output,
    },
  };
}

export function readGoogle(body: JsonObject): WireRequest {
  const messages = objects(body.contents).map((content) => {
    const parts = objects(content.parts);
    const text = (thought: boolean): string =>
      parts
        .filter((part) => (part.thought === true) === thought)
        .map((part) => word(part.text))
        .join("");
    const results = parts.flatMap(({ functionResponse }) =>
      isJsonObject(functionResponse) ? [resultOf(functionResponse)] : [],
    );
    const calls = parts.flatMap(({ functionCall }) =>
      isJsonObject(functionCall)
        ? [{ id: word(functionCall.id), name: word(functionCall.name), input: functionCall.args ?? null }]
        : [],
    );
    const proofs = parts.flatMap(({ thoughtSignature }) =>
      thoughtSignature === undefined ? [] : [word(thoughtSignature)],
    );
    const role = content.role === "model" ? "assistant" : results.length > 0 ? "tool" : "user";
    return wireMessage(role, { text: text(false), reasoning: text(true), proofs, calls, results });
  });
  const instruction = isJsonObject(body.systemInstruction) ? body.systemInstruction : {};
  const config = isJsonObject(body.generationConfig) ? body.generationConfig : {};
  const choice = isJsonObject(body.toolConfig) ? body.toolConfig.functionCallingConfig : undefined;
  const allowed = isJsonObject(choice) ? list(choice.allowedFunctionNames)[0] : undefined;
  return {
    system: objects(instruction.parts)
      .map(({ text }) => word(text))
      .join(""),
    messages,
    tools: objects(body.tools).flatMap((tool) => objects(tool.functionDeclarations).map(({ name }) => word(name))),
    ...limits(config.maxOutputTokens, config.temperature, allowed),
  };
}

function resultOf({ id, response }: JsonObject): { readonly id: string; readonly value: Json } {
  const said = isJsonObject(response) ? response : {};
  return { id: word(id), value: said.error ?? said.content ?? null };
}
