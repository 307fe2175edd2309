import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4StreamPart } from "@ai-sdk/provider";

/** A stream part with any fields at all, right or wrong. */
export function part(fields: object): LanguageModelV4StreamPart {
  const made: LanguageModelV4StreamPart = { type: "ping" };
  return Object.assign(made, fields);
}

export const finish = (unified: string, usage: object = USAGE): LanguageModelV4StreamPart =>
  part({ type: "finish", finishReason: { unified, raw: unified }, usage });

const USAGE = {
  inputTokens: { total: 7, noCache: 7, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 3, text: 3, reasoning: 0 },
};

/** A model whose stream is exactly these parts. */
export function modelOf(parts: readonly LanguageModelV4StreamPart[]): LanguageModelV4 {
  return modelFrom(() =>
    Promise.resolve(
      new ReadableStream({
        start(controller) {
          for (const each of parts) controller.enqueue(each);
          controller.close();
        },
      }),
    ),
  );
}

/** A model that makes its stream itself, to fail, hang or break as it likes. */
export function modelFrom(
  stream: (options: LanguageModelV4CallOptions) => Promise<ReadableStream<LanguageModelV4StreamPart>>,
): LanguageModelV4 {
  return {
    specificationVersion: "v4",
    provider: "fake",
    modelId: "fake-1",
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error("only streaming is used")),
    doStream: async (options) => ({ stream: await stream(options) }),
  };
}
