import { APICallError } from "@ai-sdk/provider";
import type { ResolvedModel, TurnPosition } from "@sluice/stages";
import { finish, modelFrom, part } from "./stream-model.ts";

/** What a provider says a call used. */
export interface Used {
  readonly input: number;
  readonly output: number;
  readonly cacheRead?: number;
  readonly cacheWrite?: number;
}
export type Billed =
  /** An answer with a call. Without `used` the provider does not say. */
  | { readonly kind: "answer"; readonly tool: string; readonly input: object; readonly used?: Used }
  /** An answer that ends in the middle. */
  | { readonly kind: "cut" }
  /** An answer that never comes. */
  | { readonly kind: "hang" }
  | { readonly kind: "refused"; readonly status: number };
/** One call as the provider saw it. */
export interface Asked extends TurnPosition {
  readonly maxOutputTokens: number | undefined;
  /** Characters of all it was sent. */
  readonly size: number;
}
export interface BilledModel extends ResolvedModel {
  readonly asked: readonly Asked[];
}

/** A model whose provider bills what a function says. */
export function billedModel(say: (asked: Asked) => Billed | Promise<Billed>, id = "billed/model"): BilledModel {
  const asked: Asked[] = [];
  return {
    id,
    secrets: [],
    asked,
    at: (position) =>
      modelFrom(async ({ prompt, tools = [], maxOutputTokens, abortSignal }) => {
        const size = JSON.stringify(prompt).length + JSON.stringify(tools).length;
        const now = { ...position, maxOutputTokens, size };
        asked.push(now);
        const billed = await say(now);
        if (billed.kind === "refused") throw refusal(billed.status);
        return new ReadableStream({
          start(controller) {
            controller.enqueue(part({ type: "stream-start", warnings: [] }));
            if (billed.kind === "hang") {
              abortSignal?.addEventListener("abort", () => controller.error(abortSignal.reason), { once: true });
              return;
            }
            if (billed.kind === "answer") {
              const input = JSON.stringify(billed.input);
              controller.enqueue(part({ type: "tool-call", toolCallId: "c", toolName: billed.tool, input }));
              controller.enqueue(finish("tool-calls", usageOf(billed.used)));
            }
            controller.close();
          },
        });
      }),
  };
}

function usageOf(used: Used | undefined): object {
  if (used === undefined) return {};
  const { input, output, cacheRead = 0, cacheWrite = 0 } = used;
  return {
    inputTokens: { total: input, noCache: input - cacheRead - cacheWrite, cacheRead, cacheWrite },
    outputTokens: { total: output, text: output, reasoning: 0 },
  };
}

function refusal(statusCode: number): APICallError {
  return new APICallError({ message: "no", url: "https://provider.test", requestBodyValues: {}, statusCode });
}
