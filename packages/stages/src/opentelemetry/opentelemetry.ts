import { context, type SpanContext, type TracerProvider, trace } from "@opentelemetry/api";
import type { ObservedRun, RunTelemetry, Telemetry } from "../telemetry/telemetry.ts";
import { clean } from "./names.ts";
import { RunSpans, runSpan } from "./run-spans.ts";

export interface OpenTelemetryOptions {
  /** Whose tracer makes the spans; the provider that is registered globally when omitted, also one that is registered later. */
  readonly tracerProvider?: TracerProvider;
}

/** The instrumentation scope of every span. */
const SCOPE = "@sluice/stages";
/** Runs that were suspended here and whose spans a resumed run links to; older ones are forgotten. */
const REMEMBERED = 1_000;

/**
 * Runs as spans, by the GenAI semantic conventions: `createSession({ telemetry: openTelemetry() })`. A run is below whatever
 * span is active where it is started. No prompt, answer, argument or result is in them.
 */
export function openTelemetry({ tracerProvider }: OpenTelemetryOptions = {}): Telemetry {
  const tracer = (tracerProvider ?? trace).getTracer(SCOPE);
  const suspended = new Map<string, SpanContext>();
  const remember = (runId: string, place: SpanContext): void => {
    const [oldest] = suspended.keys();
    if (suspended.size >= REMEMBERED && oldest !== undefined) suspended.delete(oldest);
    suspended.set(runId, place);
  };

  return {
    run: (observed: ObservedRun): RunTelemetry => {
      const { runId, kinds } = observed;
      const before = suspended.get(runId);
      suspended.delete(runId);
      const root = runSpan(tracer, context.active(), observed, before === undefined ? [] : [{ context: before }]);
      return new RunSpans({ root, conversation: runId, kinds }, runId, ({ status, code }, at) => {
        root.set("sluice.run.status", status);
        if (status === "failed" || status === "stopped") root.fail(clean(code ?? "_OTHER"));
        if (status === "suspended" || status === "stopped") remember(runId, root.place);
        root.end(at);
      });
    },
  };
}
