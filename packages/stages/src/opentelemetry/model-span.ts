import { type Attributes, SpanKind } from "@opentelemetry/api";
import type { ModelCallEnd, ObservedModelCall } from "../telemetry/telemetry.ts";
import { clean, modelNames, spanName } from "./names.ts";
import type { NewSpan, OpenSpan } from "./open-span.ts";

export function modelSpan(call: ObservedModelCall, shared: Attributes): NewSpan {
  const { provider, model } = modelNames(call.model);
  const attributes = {
    ...shared,
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": provider,
    "gen_ai.request.model": model,
    "gen_ai.request.stream": true,
    ...(call.temperature === undefined ? {} : { "gen_ai.request.temperature": call.temperature }),
    ...(call.topP === undefined ? {} : { "gen_ai.request.top_p": call.topP }),
    ...(call.seed === undefined ? {} : { "gen_ai.request.seed": call.seed }),
    ...(call.stopSequences === undefined ? {} : { "gen_ai.request.stop_sequences": [...call.stopSequences] }),
    ...(call.maxOutputTokens === undefined ? {} : { "gen_ai.request.max_tokens": call.maxOutputTokens }),
    "sluice.try": call.try,
  };
  return { name: spanName("chat", model), kind: SpanKind.CLIENT, attributes, at: call.at };
}

/** Sets the result of the call; the caller ends the span. */
export function endModelSpan(span: OpenSpan, end: ModelCallEnd): void {
  if (!end.ok) {
    // A cancelled call is not an error.
    if (!end.aborted) span.fail(clean(end.code));
    span.set({ "sluice.aborted": end.aborted || undefined, "http.response.status_code": end.status });
    return;
  }
  const { finishReason, responseId, responseModel, usage } = end;
  span.set({
    "gen_ai.response.finish_reasons": [clean(finishReason)],
    "gen_ai.response.id": responseId && clean(responseId),
    "gen_ai.response.model": responseModel && clean(responseModel),
    "gen_ai.usage.input_tokens": usage?.input,
    "gen_ai.usage.output_tokens": usage?.output,
    "gen_ai.usage.cache_read.input_tokens": usage?.cacheRead || undefined,
    "gen_ai.usage.cache_creation.input_tokens": usage?.cacheWrite || undefined,
    "gen_ai.usage.reasoning.output_tokens": usage?.reasoning || undefined,
  });
}
