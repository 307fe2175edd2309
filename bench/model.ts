import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4StreamPart } from "@ai-sdk/provider";

/** One streamed turn of a model: reasoning, text, one tool call. */
export interface Answer {
  readonly reasoning: readonly string[];
  readonly text: readonly string[];
  readonly tool: string;
  /** The call's arguments, in streamed pieces. */
  readonly input: readonly string[];
}

/** The model's answer to its n-th call, from 0. */
export type AnswerAt = (call: number) => Answer;

/** Called, and awaited, before a call is answered. */
export type OnCall = (call: number, options: LanguageModelV4CallOptions) => Promise<void> | undefined;

/**
 * A plain object that answers immediately. Each part is handed over when it is requested, like in a provider after its
 * transport and its parser, which are not measured.
 */
export function streamingModel(answerAt: AnswerAt, onCall: OnCall = () => undefined): LanguageModelV4 {
  let calls = 0;
  return {
    specificationVersion: "v4",
    provider: "bench",
    modelId: "instant",
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error("only streams are measured")),
    doStream: async (options) => {
      const call = calls;
      calls += 1;
      const waited = onCall(call, options);
      if (waited !== undefined) await waited;
      return { stream: streamOf(partsOf(answerAt(call), call)) };
    },
  };
}

/** One tool call as a whole, with its arguments as JSON text. */
export interface WholeCall {
  readonly tool: string;
  readonly input: string;
}

/**
 * A model that answers each call in three parts (the start, one tool call, the finish), or with one object to a caller that
 * does not stream. The least that a model can cost, so that the most is left of what its caller costs.
 */
export function wholeModel(callAt: (call: number) => WholeCall): LanguageModelV4 {
  let calls = 0;
  const next = () => {
    const { tool: toolName, input } = callAt(calls);
    const toolCallId = `call_${calls}`;
    calls += 1;
    return { type: "tool-call", toolCallId, toolName, input } as const;
  };
  return {
    specificationVersion: "v4",
    provider: "bench",
    modelId: "instant",
    supportedUrls: {},
    doGenerate: async () => ({ content: [next()], warnings: [], ...finish() }),
    doStream: async () => ({
      stream: streamOf([{ type: "stream-start", warnings: [] }, next(), { type: "finish", ...finish() }]),
    }),
  };
}

/** Hands each part over when it is requested. */
function streamOf(parts: readonly LanguageModelV4StreamPart[]): ReadableStream<LanguageModelV4StreamPart> {
  let next = 0;
  return new ReadableStream<LanguageModelV4StreamPart>({
    pull: (controller) => {
      const part = parts[next];
      next += 1;
      if (part === undefined) controller.close();
      else controller.enqueue(part);
    },
  });
}

function finish() {
  return {
    finishReason: { unified: "tool-calls", raw: "tool_use" },
    usage: {
      inputTokens: { total: 812, noCache: 812, cacheRead: 0, cacheWrite: 0 },
      outputTokens: { total: 214, text: 150, reasoning: 64 },
    },
  } as const;
}

function partsOf({ reasoning, text, tool, input }: Answer, call: number): readonly LanguageModelV4StreamPart[] {
  const parts: LanguageModelV4StreamPart[] = [
    { type: "stream-start", warnings: [] },
    { type: "response-metadata", id: `msg_${call}`, modelId: "instant" },
  ];
  if (reasoning.length > 0) {
    parts.push({ type: "reasoning-start", id: "0" });
    for (const delta of reasoning) parts.push({ type: "reasoning-delta", id: "0", delta });
    parts.push({ type: "reasoning-end", id: "0" });
  }
  if (text.length > 0) {
    parts.push({ type: "text-start", id: "1" });
    for (const delta of text) parts.push({ type: "text-delta", id: "1", delta });
    parts.push({ type: "text-end", id: "1" });
  }
  const id = `call_${call}`;
  parts.push({ type: "tool-input-start", id, toolName: tool });
  for (const delta of input) parts.push({ type: "tool-input-delta", id, delta });
  parts.push(
    { type: "tool-input-end", id },
    { type: "tool-call", toolCallId: id, toolName: tool, input: input.join("") },
  );
  parts.push({ type: "finish", ...finish() });
  return parts;
}

/** A streamed text. */
export function pieces(text: string, count: number): readonly string[] {
  const size = Math.ceil(text.length / count);
  return Array.from({ length: count }, (_, at) => text.slice(at * size, (at + 1) * size)).filter(
    (piece) => piece !== "",
  );
}
