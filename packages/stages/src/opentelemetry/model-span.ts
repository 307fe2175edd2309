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
    ...(call.maxOutputTokens === undefined ? {} : { "gen_ai.request.max_tokens": call.maxOutputTokens }),
    "sluice.try": call.try,
  };
  return { name: spanName("chat", model), kind: SpanKind.CLIENT, attributes, at: call.at };
}

/** Sets the result of the call; the caller ends the span. */
export function endModelSpan(span: OpenSpan, end: ModelCallEnd): void {
  if (!end.ok) {
    // A cancelled call is not an error.
    if (end.aborted) span.set("sluice.aborted", true);
    else span.fail(clean(end.code));
    if (end.status !== undefined) span.set("http.response.status_code", end.status);
    return;
  }
  const { usage } = end;
  span.set("gen_ai.response.finish_reasons", [clean(end.finishReason)]);
  if (end.responseId !== undefined) span.set("gen_ai.response.id", clean(end.responseId));
  if (end.responseModel !== undefined) span.set("gen_ai.response.model", clean(end.responseModel));
  if (usage === undefined) return;
  span.set("gen_ai.usage.input_tokens", usage.input);
  span.set("gen_ai.usage.output_tokens", usage.output);
  if (usage.cacheRead > 0) span.set("gen_ai.usage.cache_read.input_tokens", usage.cacheRead);
  if (usage.cacheWrite > 0) span.set("gen_ai.usage.cache_creation.input_tokens", usage.cacheWrite);
  if (usage.reasoning > 0) span.set("gen_ai.usage.reasoning.output_tokens", usage.reasoning);
}
