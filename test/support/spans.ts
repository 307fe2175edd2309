import { type Attributes, context, SpanStatusCode } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { BasicTracerProvider, type ReadableSpan, type SpanProcessor } from "@opentelemetry/sdk-trace-base";
import { onTestFinished } from "vitest";

/** The SDK as a program sets it up, with everything it makes kept in order. */
export interface Traced {
  readonly tracerProvider: BasicTracerProvider;
  /** Spans that ended, in the order in which they began. */
  spans(): readonly ReadableSpan[];
  /** How many began and did not end. */
  open(): number;
  named(name: string): readonly ReadableSpan[];
  /** The attributes of the one span of a name. */
  attributes(name: string): Attributes;
  /** One line a span, in the order in which they began, each below its parent: `turn`, `execute_tool Read ! tool_error`. */
  tree(): readonly string[];
}

export function traced(): Traced {
  const begun: string[] = [];
  const ended = new Map<string, ReadableSpan>();
  const keeper: SpanProcessor = {
    onStart: (span) => void begun.push(span.spanContext().spanId),
    onEnd: (span) => void ended.set(span.spanContext().spanId, span),
    forceFlush: async () => undefined,
    shutdown: async () => undefined,
  };
  const spans = (): readonly ReadableSpan[] => begun.flatMap((id) => ended.get(id) ?? []);
  const named = (name: string): readonly ReadableSpan[] => spans().filter((span) => span.name === name);
  return {
    tracerProvider: new BasicTracerProvider({ spanProcessors: [keeper] }),
    spans,
    open: () => begun.length - ended.size,
    named,
    attributes: (name) => {
      const [only, ...more] = named(name);
      if (only === undefined || more.length > 0) throw new Error(`${named(name).length} spans are called ${name}`);
      return only.attributes;
    },
    tree: () => {
      const below = (parent: string | undefined, depth: number): readonly string[] =>
        spans()
          .filter((span) => span.parentSpanContext?.spanId === parent)
          .flatMap((span) => [`${"  ".repeat(depth)}${lineOf(span)}`, ...below(span.spanContext().spanId, depth + 1)]);
      return below(undefined, 0);
    },
  };
}

function lineOf({ name, status, attributes }: ReadableSpan): string {
  return status.code === SpanStatusCode.ERROR ? `${name} ! ${String(attributes["error.type"])}` : name;
}

/** Lets contexts follow promises in this test, as a program's SDK does. */
export function withContexts(): void {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  onTestFinished(() => context.disable());
}
