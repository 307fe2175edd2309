// A run as OpenTelemetry spans, sent to a collector or printed. With @opentelemetry/sdk-node, `new NodeSDK().start()` replaces
// the first lines.
//   node examples/telemetry.ts
//   OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 node examples/telemetry.ts
import { context, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { BasicTracerProvider, BatchSpanProcessor, ConsoleSpanExporter } from "@opentelemetry/sdk-trace-base";
import { done, pipeline, stage } from "@sluice/core";
import { createSession, scriptedModel } from "@sluice/stages";
import { openTelemetry } from "@sluice/stages/opentelemetry";
import { z } from "zod";

const collector = process.env.OTEL_EXPORTER_OTLP_ENDPOINT !== undefined;
const exporter = collector ? new OTLPTraceExporter() : new ConsoleSpanExporter();
const provider = new BasicTracerProvider({ spanProcessors: [new BatchSpanProcessor(exporter)] });
trace.setGlobalTracerProvider(provider);
// Lets spans of other instrumentations, such as fetch, find their parents.
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());

const count = stage({
  prompt: "Count the examples in this folder.",
  allowedTools: ["Glob"],
  completionTool: "submit_count",
  completionSchema: z.object({ examples: z.number() }),
  turnCap: 5,
});
const counting = pipeline({
  id: "counting",
  input: z.object({ task: z.string() }),
  stages: { count },
  initial: "count",
  next: { count: ({ output }) => done(output) },
});
const script = scriptedModel({
  stages: {
    count: [
      { calls: [{ tool: "Glob", input: { pattern: "*.ts" } }] },
      // A denied call is a span without an error.
      { calls: [{ tool: "Bash", input: { command: "rm fan-out.ts" } }] },
      { calls: [{ tool: "submit_count", input: { examples: 10 } }] },
    ],
  },
});

const session = createSession({
  model: process.env.SLUICE_MODEL ?? script,
  cwd: import.meta.dirname,
  telemetry: openTelemetry(),
});
const result = await session.run(counting, { task: "Count the examples." });
await session.close();
await provider.shutdown(); // sends the remaining spans
console.log(result.status, "run", result.runId);
