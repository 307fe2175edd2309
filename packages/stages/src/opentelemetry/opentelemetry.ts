import { context, type SpanContext, type TracerProvider, trace } from "@opentelemetry/api";
import type { ObservedRun, RunTelemetry, Telemetry } from "../telemetry/telemetry.ts";
import { clean, spanName } from "./names.ts";
import { OpenSpan } from "./open-span.ts";
import { RunSpans } from "./run-spans.ts";

export interface OpenTelemetryOptions {
  /** Default: the globally registered provider, even if it is registered later. */
  readonly tracerProvider?: TracerProvider;
}

/** The instrumentation scope of every span. */
const SCOPE = "@sluice/stages";
/** A resumed run links to the span of its last execution in this process, if it is among this many suspended runs. */
const MAX_SUSPENDED = 1_000;

/**
 * Reports runs as spans by the GenAI semantic conventions: `createSession({ telemetry: openTelemetry() })`. A run's span is a
 * child of the span that is active where the run starts. Spans contain no prompts, replies, arguments or results.
 */
export function openTelemetry({ tracerProvider }: OpenTelemetryOptions = {}): Telemetry {
  const tracer = (tracerProvider ?? trace).getTracer(SCOPE);
  const suspended = new Map<string, SpanContext>();
  const remember = (runId: string, span: SpanContext): void => {
    const [oldest] = suspended.keys();
    if (suspended.size >= MAX_SUSPENDED && oldest !== undefined) suspended.delete(oldest);
    suspended.set(runId, span);
  };

  return {
    run: ({ runId, pipeline, kinds, resumed, at }: ObservedRun): RunTelemetry => {
      const previous = suspended.get(runId);
      suspended.delete(runId);
      const attributes = {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": pipeline,
        "gen_ai.conversation.id": runId,
        "sluice.run.id": runId,
        ...(resumed ? { "sluice.run.resumed": true } : {}),
      };
      const links = previous === undefined ? [] : [{ context: previous }];
      const name = spanName("invoke_workflow", pipeline);
      const root = new OpenSpan(tracer, context.active(), { name, attributes, at, links });
      return new RunSpans({ root, conversation: runId, kinds }, runId, ({ status, code }, endedAt) => {
        root.set({ "sluice.run.status": status });
        if (status === "failed" || status === "stopped") root.fail(clean(code ?? "_OTHER"));
        if (status === "suspended" || status === "stopped") remember(runId, root.spanContext);
        root.end(endedAt);
      });
    },
  };
}
