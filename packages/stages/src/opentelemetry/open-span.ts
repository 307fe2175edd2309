import {
  type Attributes,
  type Context,
  context,
  type HrTime,
  type Link,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";

export interface NewSpan {
  readonly name: string;
  readonly attributes: Attributes;
  /** Epoch milliseconds. */
  readonly at: number;
  /** Default INTERNAL. */
  readonly kind?: SpanKind;
  readonly links?: Link[];
}

/** A span with its context. It ends once, and never before its children. */
export class OpenSpan {
  readonly #span: Span;
  readonly #tracer: Tracer;
  readonly #context: Context;
  #latest: number;
  #ended = false;

  constructor(
    tracer: Tracer,
    parent: Context,
    { name, attributes, at, kind = SpanKind.INTERNAL, links = [] }: NewSpan,
  ) {
    this.#tracer = tracer;
    this.#latest = at;
    this.#span = tracer.startSpan(name, { kind, attributes, links, startTime: timeOf(at) }, parent);
    this.#context = trace.setSpan(parent, this.#span);
  }

  open(child: NewSpan): OpenSpan {
    return new OpenSpan(this.#tracer, this.#context, child);
  }

  /** For links from other spans. */
  get spanContext(): SpanContext {
    return this.#span.spanContext();
  }

  /** The latest end of a child, or its own start. */
  get latest(): number {
    return this.#latest;
  }

  /** Extends the span at least until `at`. */
  reach(at: number): void {
    this.#latest = Math.max(this.#latest, at);
  }

  /** Sets those attributes that are defined. */
  set(attributes: Attributes): void {
    for (const [name, value] of Object.entries(attributes))
      if (value !== undefined) this.#span.setAttribute(name, value);
  }

  event(name: string, attributes: Attributes, at: number): void {
    this.reach(at);
    this.#span.addEvent(name, attributes, timeOf(at));
  }

  /** Reports only the code of an error: messages may contain output of models and tools. */
  fail(code: string): void {
    this.#span.setAttribute("error.type", code);
    this.#span.setStatus({ code: SpanStatusCode.ERROR });
  }

  within(work: () => void): void {
    context.with(this.#context, work);
  }

  end(at: number): void {
    if (this.#ended) return;
    this.#ended = true;
    this.reach(at);
    this.#span.end(timeOf(this.#latest));
  }
}

/** A pair, because small numbers mean milliseconds since the process started. */
function timeOf(ms: number): HrTime {
  const seconds = Math.floor(ms / 1000);
  return [seconds, Math.round((ms - seconds * 1000) * 1e6)];
}
