// What the three programs of a cold start share: a schema, a prompt, and a model that answers at once.
import { z } from "zod";

export const STAGES = ["plan", "implement", "review"];
export const TOOL = "submit_result";
export const PROMPT = "You review a change. Give a verdict with your findings.";
export const TASK = "Review the change to the retry policy of the upload client.";

export const schema = z.object({
  verdict: z.enum(["approve", "request_changes"]),
  summary: z.string().min(1),
  findings: z.array(z.object({ file: z.string(), line: z.number().int(), note: z.string() })),
});

const ANSWER = JSON.stringify({
  verdict: "request_changes",
  summary: "The last attempt is never made because the comparison stops one short.",
  findings: [{ file: "src/upload/retry.ts", line: 41, note: "attempt < maxAttempts leaves out the last attempt." }],
});

/** A model that answers each call at once, in three parts to a caller that streams, else in one. */
export function instantModel() {
  const call = () => ({ type: "tool-call", toolCallId: "call_0", toolName: TOOL, input: ANSWER });
  const finish = () => ({
    finishReason: { unified: "tool-calls", raw: "tool_use" },
    usage: {
      inputTokens: { total: 812, noCache: 812, cacheRead: 0, cacheWrite: 0 },
      outputTokens: { total: 214, text: 214, reasoning: 0 },
    },
  });
  return {
    specificationVersion: "v4",
    provider: "bench",
    modelId: "instant",
    supportedUrls: {},
    doGenerate: async () => ({ content: [call()], warnings: [], ...finish() }),
    doStream: async () => ({
      stream: new ReadableStream({
        start: (controller) => {
          controller.enqueue({ type: "stream-start", warnings: [] });
          controller.enqueue(call());
          controller.enqueue({ type: "finish", ...finish() });
          controller.close();
        },
      }),
    }),
  };
}
