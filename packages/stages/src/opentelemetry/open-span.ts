import {
  type Attributes,
  type AttributeValue,
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
  /** INTERNAL when omitted. */
  readonly kind?: SpanKind;
  readonly links?: Link[];
}

/** A span that is open, with the context that holds it. Ends once, and never before what is below it has. */
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

  /** Opens a span below this one. */
  open(below: NewSpan): OpenSpan {
    return new OpenSpan(this.#tracer, this.#context, below);
  }

  /** Where it is, for a link from elsewhere. */
  get place(): SpanContext {
    return this.#span.spanContext();
  }

  /** When something below it ended last; when it began, before that. */
  get latest(): number {
    return this.#latest;
  }

  /** Something of it was still at work then. */
  reach(at: number): void {
    this.#latest = Math.max(this.#latest, at);
  }

  set(name: string, value: AttributeValue): void {
    this.#span.setAttribute(name, value);
  }

  event(name: string, attributes: Attributes, at: number): void {
    this.reach(at);
    this.#span.addEvent(name, attributes, timeOf(at));
  }

  /** An error, by its code alone: messages may hold what models and tools said. */
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

/** As a pair: a number that is small would be taken for milliseconds since the process began. */
function timeOf(ms: number): HrTime {
  const seconds = Math.floor(ms / 1000);
  return [seconds, Math.round((ms - seconds * 1000) * 1e6)];
}
